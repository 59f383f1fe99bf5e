//! A storage node before the disks: the stream scheduler of each volume, in virtual time.
//!
//! A machine without a clock, as a page cache is one. Clients' requests go in by [`Node::submit`], the commands that the
//! scheduler makes of them come out of [`Node::poll`] and are told done by [`Node::transferred`]; a client has its answer
//! when [`Node::poll_ended`] says so, at the time at which the scheduler gave it.
//!
//! *Time:* a request that waited for commands has the time split of the one that brought its answer, as far as it waited;
//! what it waited before is `queued`.
//!
//! Modelled: the scheduler itself ([`headstack_policy::streams`]: the code that serves real disks). Not modelled: bytes,
//! the network, and the time that the node's processor needs.

use crate::device::{Completion, Outcome};
use headstack_model::{Lbn, Nanos, Op, Request};
use headstack_policy::streams::{self, Action, Answer, Ask, Command, DiskError, Place, Streams, Transfer};
use slab::Slab;
use std::collections::VecDeque;

/// What goes from a client to the node.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Asked {
    /// What its end is told by.
    pub(crate) ask: u32,
    pub(crate) request: Request,
    pub(crate) source: u32,
    pub(crate) urgent: bool,
}

/// A client's request that is under way.
#[derive(Clone, Copy, Debug)]
struct Client {
    asked: Asked,
    since: Nanos,
}

/// What the disk is to do.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Wish {
    /// What its end is told by.
    pub(crate) number: u32,
    pub(crate) request: Request,
    pub(crate) source: u32,
    pub(crate) urgent: bool,
}

/// A client's request that is over.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ended {
    pub(crate) ask: u32,
    pub(crate) completion: Completion,
    /// Whether it waited for nothing.
    pub(crate) hit: bool,
}

/// The node's part for one volume.
#[derive(Debug)]
pub(crate) struct Node {
    streams: Streams,
    sector_bytes: u64,
    /// By ticket.
    clients: Slab<Client>,
    wishes: VecDeque<Wish>,
    ended: VecDeque<Ended>,
}

impl Node {
    /// Room for so many requests under way before more is allocated.
    const AT_ONCE: usize = 1024;

    /// A node for a volume of so many blocks of so many bytes.
    ///
    /// *Errors:* a key of the configuration is out of its range.
    pub(crate) fn new(
        config: &streams::Config,
        sectors: u64,
        sector_bytes: u32,
    ) -> Result<Node, streams::ConfigError> {
        let sector_bytes = u64::from(sector_bytes);
        Ok(Node {
            streams: Streams::new(config.clone(), sectors * sector_bytes)?,
            sector_bytes,
            clients: Slab::with_capacity(Node::AT_ONCE),
            wishes: VecDeque::with_capacity(Node::AT_ONCE),
            ended: VecDeque::with_capacity(Node::AT_ONCE),
        })
    }

    pub(crate) fn streams(&self) -> &Streams {
        &self.streams
    }

    /// Whether a request is the scheduler's: one that the volume does not hold is left to it to refuse.
    pub(crate) fn takes(&self, request: &Request) -> bool {
        let sectors = self.streams.disk_bytes() / self.sector_bytes;
        let end = request.lbn.0.saturating_add(u64::from(request.sectors));
        request.op == Op::Flush || (request.sectors > 0 && end <= sectors)
    }

    /// A client asks.
    pub(crate) fn submit(&mut self, now: Nanos, asked: Asked) {
        let Request { op, lbn, sectors, fua } = asked.request;
        let (offset, bytes) = (lbn.0 * self.sector_bytes, u64::from(sectors) * self.sector_bytes);
        let ask = match op {
            Op::Read => Ask::Read { offset, bytes, fua },
            Op::Write => Ask::Write { offset, bytes, fua },
            Op::Flush => Ask::Flush,
        };
        let ticket = self.clients.insert(Client { asked, since: now }) as u64;
        self.streams.submit(now, streams::Request { ticket, client: asked.source.into(), ask });
        self.act(now, None);
    }

    /// A command is done.
    pub(crate) fn transferred(&mut self, now: Nanos, number: u32, how: &Completion) {
        let result = match how.outcome {
            Outcome::Done => Ok(()),
            Outcome::OutOfRange => Err(DiskError::Refused),
            Outcome::MediumError => Err(DiskError::Medium),
            Outcome::Dead => Err(DiskError::Dead),
        };
        self.streams.handle_end(now, number, result);
        self.act(now, Some(how));
    }

    pub(crate) fn handle_timeout(&mut self, now: Nanos) {
        if self.streams.poll_timeout().is_some_and(|at| at <= now) {
            self.streams.handle_timeout(now);
            self.act(now, None);
        }
    }

    /// What the disk is to do next.
    pub(crate) fn poll(&mut self) -> Option<Wish> {
        self.wishes.pop_front()
    }

    /// Who has an answer.
    pub(crate) fn poll_ended(&mut self) -> Option<Ended> {
        self.ended.pop_front()
    }

    /// When [`Node::handle_timeout`] or [`Node::poll_ended`] has something to do; `Nanos::MAX` when never.
    pub(crate) fn next_event(&self) -> Nanos {
        let answered = self.ended.front().map_or(Nanos::MAX, |ended| ended.completion.completed);
        answered.min(self.streams.poll_timeout().unwrap_or(Nanos::MAX))
    }

    /// Does what the scheduler says, after it was told of the end of a command or of something else.
    fn act(&mut self, now: Nanos, how: Option<&Completion>) {
        while let Some(action) = self.streams.poll_action() {
            match action {
                // It takes no time to copy bytes that are none.
                Action::Keep { .. } => {}
                Action::Start(command) => self.start(command),
                Action::Answer(answer) => self.answer(now, answer, how),
            }
        }
    }

    fn start(&mut self, Command { id, transfer, offset, bytes, place }: Command) {
        let (op, fua) = match transfer {
            Transfer::Read { fua } => (Op::Read, fua),
            Transfer::Write { fua } => (Op::Write, fua),
            Transfer::Flush => (Op::Flush, false),
            Transfer::Own => unreachable!("no client of a simulation asks for a change or a look"),
        };
        // A flush has no blocks.
        let (lbn, sectors) = (Lbn(offset / self.sector_bytes), (bytes / self.sector_bytes) as u32);
        let request = if op == Op::Flush { Request::flush() } else { Request { op, lbn, sectors, fua } };
        let (source, urgent) = match place {
            Place::Request(ticket) => {
                let asked = &self.clients[ticket as usize].asked;
                (asked.source, asked.urgent)
            }
            // What is read for a stream, or was gathered, is nobody's alone.
            Place::Memory(_) | Place::None => (u32::MAX, false),
        };
        self.wishes.push_back(Wish { number: id, request, source, urgent });
    }

    fn answer(&mut self, now: Nanos, answer: Answer, how: Option<&Completion>) {
        let Client { asked, since } = self.clients.remove(answer.ticket as usize);
        let mut completion = Completion { completed: now, ..Completion::at_once(asked.request, since) };
        let waited = completion.response();
        if let Some(how) = how {
            completion.parts = how.parts.last(waited);
            (completion.travel, completion.cache) = (how.travel, how.cache);
        }
        completion.parts.queued += Nanos(waited.0 - completion.parts.total().0);
        completion.outcome = match answer.result {
            Ok(_) => Outcome::Done,
            Err(DiskError::Refused) => Outcome::OutOfRange,
            Err(DiskError::Medium | DiskError::NoSpace) => Outcome::MediumError,
            Err(DiskError::Dead) => Outcome::Dead,
        };
        self.ended.push_back(Ended { ask: asked.ask, completion, hit: waited == Nanos::ZERO });
    }
}
