//! A clone that replays a log: `read_iolog`.
//!
//! A log with times is issued at its times; one without, after completions and their waits. In both cases at most `iodepth`
//! requests are outstanding, as in fio. The log is read as it is needed. A flush of each volume at the end (`end_fsync`) follows the last
//! request of a log that writes, unless that was a flush.

use std::fmt;

use headstack_model::{Instant, Op};

use super::pace::Term;
use super::process::Step;
use super::request::FioRequest;
use super::settings::Settings;
use crate::VolumeInfo;
use crate::load::{Load, Poll};
use crate::only_disk::OnlyDisk;
use crate::trace::{DeviceMap, OutOfRange, Replay, ReplayError, ReplayOptions, Trace};

pub(super) struct Logged {
    replay: Replay<'static>,
    depth: u32,
    requests: u64,
    pub(super) term: Term,
    fua: bool,
    issued: u64,
    out: u32,
    /// The replay's own number of the last request. A replay that waits has only one request outstanding.
    last: u64,
    end: EndFlush,
}

/// The flushes at the end of a log.
#[derive(Debug, Default)]
struct EndFlush {
    is_wanted: bool,
    has_written: bool,
    /// Whether the last request was a flush, after which fio makes none.
    was_flush: bool,
    /// The volumes that the log used, in this order.
    volumes: Vec<u32>,
    /// Of these, how many were flushed at the end.
    flushed: usize,
}

impl EndFlush {
    fn note(&mut self, volume: u32, op: Op) {
        self.has_written |= op == Op::Write;
        self.was_flush = op == Op::Flush;
        if !self.volumes.contains(&volume) {
            self.volumes.push(volume);
        }
    }

    /// The next volume to flush once nothing else is outstanding.
    fn next_volume(&mut self) -> Option<u32> {
        if !self.is_wanted || !self.has_written || self.was_flush {
            return None;
        }
        let volume = self.volumes.get(self.flushed).copied()?;
        self.flushed += 1;
        Some(volume)
    }
}

impl fmt::Debug for Logged {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Logged").field("file", &self.replay.trace().file()).finish_non_exhaustive()
    }
}

impl Logged {
    /// The replay of `log` on these volumes; all on `volume` if it is given.
    pub(super) fn new(
        settings: &Settings,
        log: Trace<'static>,
        volumes: &[VolumeInfo],
        volume: Option<u32>,
    ) -> Logged {
        let names = volumes.iter().zip(0..).flat_map(|(volume, number)| {
            [(volume.name.clone(), number), (format!("/dev/{}", volume.name), number)]
        });
        let devices = match volume {
            Some(volume) => DeviceMap::AllTo(volume),
            None if volumes.len() == 1 => DeviceMap::OneDisk(OnlyDisk::default()),
            None => DeviceMap::Named(names.collect()),
        };
        let time_scale = settings.log.time_scale();
        let options = ReplayOptions { time_scale, devices, out_of_range: OutOfRange::Error };
        Logged {
            replay: Replay::new(log, volumes, options),
            depth: settings.queue.depth() as u32,
            requests: settings.life.requests,
            term: Term::new(&settings.life),
            fua: settings.flushes.fua,
            issued: 0,
            out: 0,
            last: 0,
            end: EndFlush { is_wanted: settings.flushes.at_end, ..EndFlush::default() },
        }
    }

    /// As [`Logged::error`], and clears it.
    pub(super) fn take_error(&mut self) -> Option<ReplayError> {
        self.replay.take_error()
    }

    /// The error that ended the replay before the log's end.
    pub(super) fn error(&self) -> Option<&ReplayError> {
        self.replay.error()
    }

    /// A time on the clock of the replay, which starts with the clone.
    fn replayed(&self, now: Instant) -> Instant {
        Instant::ZERO + now.since(self.term.started)
    }

    /// Number of outstanding requests.
    pub(super) fn outstanding(&self) -> u32 {
        self.out
    }

    pub(super) fn complete(&mut self, now: Instant) {
        self.out -= 1;
        if self.end.flushed > 0 {
            // The replay is over and does not know the flushes at its end.
            return;
        }
        self.replay.handle_completion(self.replayed(now), self.last);
    }

    /// The next step. The logs of a load share the disk that a rig's only volume stands for.
    #[inline(never)]
    pub(super) fn poll(&mut self, now: Instant, only_disk: &mut OnlyDisk) -> Step {
        self.replay.exchange_disk(only_disk);
        let step = self.step(now);
        self.replay.exchange_disk(only_disk);
        step
    }

    fn step(&mut self, now: Instant) -> Step {
        if self.out >= self.depth {
            return Step::Blocked;
        }
        let is_over = self.term.is_over(now) || self.requests > 0 && self.issued >= self.requests;
        match if is_over { Poll::Done } else { self.replay.poll(self.replayed(now)) } {
            Poll::Issue(issue) => {
                self.last = issue.id;
                self.issued += 1;
                self.out += 1;
                let mut request = issue.request;
                self.end.note(issue.device, request.op);
                request.fua = self.fua && request.op == Op::Write;
                let more = self.out < self.depth;
                Step::Issue(FioRequest {
                    volume: issue.device,
                    request,
                    urgent: false,
                    idle: false,
                    limit: 0,
                    resets_zone: false,
                    more,
                    tracked: false,
                })
            }
            Poll::Later(at) => {
                Step::Later(self.term.until(self.term.started.saturating_add(at.since_start())))
            }
            Poll::Done if self.out == 0 => self.end_step(),
            Poll::Waiting | Poll::Done => Step::Blocked,
            Poll::Compute { .. } => unreachable!("a log has the times of requests alone"),
        }
    }

    /// The next flush at the end of the log, or the end of the replay.
    fn end_step(&mut self) -> Step {
        let Some(volume) = self.end.next_volume() else { return Step::Ended };
        self.out += 1;
        Step::Issue(FioRequest::flush(volume))
    }
}
