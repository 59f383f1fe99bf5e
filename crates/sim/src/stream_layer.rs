//! A storage node in front of the disks: the stream scheduler of each volume, in virtual time.
//!
//! A [`Layer`] around [`headstack_streams::streams`], the code that serves real disks.
//!
//! *Time:* a request that waited for commands has the time split of the one that brought its answer, as far as it waited; its wait
//! before that is `queued`.
//!
//! Modelled: the scheduler itself. Not modelled: bytes. The processor's time for clients and the network are modelled by the layer of the
//! host's calls.

use crate::device::{Completion, Outcome};
use crate::layer::{Completed, Layer, Out, Submission};
use headstack_model::spec::Fault;
use headstack_model::{Instant, Nanos, Op, Request};
use headstack_streams::streams::{self, Action, Command, LayerRequest, RequestKind, Streams, TransferBuffer};
use slab::Slab;
use std::collections::VecDeque;

/// A client's request that has no answer yet.
#[derive(Clone, Copy, Debug)]
struct Client {
    submission: Submission,
    since: Instant,
}

/// The stream scheduler of a volume.
#[derive(Debug)]
pub struct StreamLayer {
    streams: Streams,
    sector_bytes: u64,
    clients: Slab<Client>,
    /// Answers of the scheduler that the engine has not collected yet.
    ended: VecDeque<Completed>,
}

impl StreamLayer {
    /// Requests in flight for which memory is allocated at the start.
    const AT_ONCE: usize = 1024;

    /// A node for a volume of `sectors` blocks of `sector_bytes` bytes.
    ///
    /// *Errors:* a key of the configuration is out of its range.
    pub(crate) fn new(
        config: &streams::Config,
        sectors: u64,
        sector_bytes: u32,
    ) -> Result<StreamLayer, Fault> {
        let sector_bytes = u64::from(sector_bytes);
        Ok(StreamLayer {
            streams: Streams::new(config.clone(), sectors * sector_bytes)?,
            sector_bytes,
            clients: Slab::with_capacity(StreamLayer::AT_ONCE),
            ended: VecDeque::with_capacity(StreamLayer::AT_ONCE),
        })
    }

    /// Sets the ranges of a volume with several arms, by their first blocks.
    pub(crate) fn set_arms(&mut self, firsts: &[u64]) {
        let bytes: Vec<u64> = firsts.iter().map(|first| first * self.sector_bytes).collect();
        self.streams.set_arms(&bytes);
    }

    /// Makes writes obey the zones of the volume, each of this many blocks.
    pub(crate) fn set_write_zones(&mut self, zone_sectors: u64) {
        self.streams.set_write_zones(zone_sectors * self.sector_bytes);
    }

    /// Sets the duration limits of the disk's reads, each by its number with its time.
    pub(crate) fn set_read_limits(&mut self, limits: impl IntoIterator<Item = (u8, Nanos)>) {
        self.streams.set_read_limits(limits);
    }

    /// Gives a client, a source of the load, a guarantee. The caller has checked that the disk can keep it ([`headstack_policy::admission`]).
    pub fn set_guarantee(&mut self, source: u32, guarantee: streams::Guarantee) {
        self.streams.set_guarantee(source.into(), guarantee);
    }

    /// The stream scheduler.
    pub fn streams(&self) -> &Streams {
        &self.streams
    }

    /// Whether a request is the scheduler's. It leaves one beyond the end of the volume to the device, which refuses it.
    fn serves(&self, request: &Request) -> bool {
        let sectors = self.streams.disk_bytes() / self.sector_bytes;
        let end = request.lbn.0.saturating_add(u64::from(request.sectors));
        request.op == Op::Flush || (request.sectors > 0 && end <= sectors)
    }

    fn next_event(&self) -> Instant {
        let answered = self.ended.front().map_or(Instant::MAX, |ended| ended.completion.completed);
        answered.min(self.streams.poll_timeout().unwrap_or(Instant::MAX))
    }

    /// Carries out the scheduler's actions, after the end of a command or another event.
    fn act(&mut self, now: Instant, how: Option<&Completion>, out: &mut Out<'_>) {
        while let Some(action) = self.streams.poll_action() {
            match action {
                // It takes no time to copy bytes that are none.
                Action::CopyIn { .. } => {}
                Action::Start(command) => self.start(command, out),
                Action::Answer(answer) => self.answer(now, answer, how),
            }
        }
        out.wake_at(self.next_event());
    }

    fn start(&mut self, command: Command, out: &mut Out<'_>) {
        let Command { id, place, limit: own, .. } = command;
        // A simulation has reads, writes and flushes.
        let request = command.blocks(self.sector_bytes as u32).unwrap_or_else(Request::flush);
        let (source, urgent, idle, limit) = match place {
            TransferBuffer::Request(ticket) => {
                let Submission { source, urgent, idle, limit, .. } = self.clients[ticket as usize].submission;
                (source, urgent, idle, limit)
            }
            // Read-ahead and coalesced data belong to no single request.
            _ => (u32::MAX, false, false, 0),
        };
        // The limit that keeps a guarantee precedes the one that the load gave.
        let limit = if own > 0 { own } else { limit };
        let submission = Submission { source, urgent, idle, limit, ..Submission::new(id, request) };
        out.down(0, submission);
    }

    fn answer(&mut self, now: Instant, answer: streams::Answer, how: Option<&Completion>) {
        let Client { submission, since } = self.clients.remove(answer.ticket as usize);
        let mut completion = Completion { completed: now, ..Completion::at_once(submission.request, since) };
        let waited = completion.response();
        if let Some(how) = how {
            completion.parts = how.parts.last(waited);
            (completion.travel, completion.cache) = (how.travel, how.cache);
        }
        completion.parts.queued += Nanos(waited.0 - completion.parts.total().0);
        completion.outcome = answer.result.map_or_else(Outcome::from, |_| Outcome::Done);
        if let Ok(streams::Outcome::Staged(pieces)) = &answer.result {
            self.streams.release(pieces);
        }
        self.ended.push_back(Completed { id: submission.id, completion, cached: waited == Nanos::ZERO });
    }
}

impl Layer for StreamLayer {
    fn submit(&mut self, now: Instant, submission: Submission, out: &mut Out<'_>) {
        if !self.serves(&submission.request) {
            return out.forward(0, submission.request.lbn);
        }
        let Request { op, lbn, sectors, fua } = submission.request;
        let (offset, bytes) = (lbn.0 * self.sector_bytes, u64::from(sectors) * self.sector_bytes);
        let kind = match op {
            Op::Read => RequestKind::Read { offset, bytes, fua },
            Op::Write => RequestKind::Write { offset, bytes, fua },
            Op::Flush => RequestKind::Flush,
        };
        let ticket = self.clients.insert(Client { submission, since: now }) as u64;
        self.streams.submit(now, streams::Request { ticket, client: submission.source.into(), kind });
        self.act(now, None, out);
    }

    fn complete(&mut self, now: Instant, _child: u32, answer: &Completed, out: &mut Out<'_>) {
        self.streams.handle_end(now, answer.id, answer.completion.outcome.result());
        self.act(now, Some(&answer.completion), out);
    }

    fn wake(&mut self, now: Instant, out: &mut Out<'_>) {
        if self.streams.poll_timeout().is_some_and(|at| at <= now) {
            self.streams.handle_timeout(now);
            self.act(now, None, out);
        }
        self.ended.drain(..).for_each(|ended| out.up(ended));
        out.wake_at(self.next_event());
    }

    fn first_wake(&self) -> Instant {
        self.next_event()
    }
}
