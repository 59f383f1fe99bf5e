//! The log of the arm's accesses, for programs that show what a disk does. It is off by default and changes nothing.

use super::media::Span;
use super::{ArmWork, Travel};
use headstack_model::{Instant, Lbn, Nanos, TrackPlace};
use std::collections::VecDeque;
use std::ops::Range;

/// Records that are kept until they are polled; of more, the oldest are dropped and counted. *Source:* assumption, some seconds of
/// the fastest disk.
const RECORDS_MAX: usize = 4096;

/// An access of the arm: a command's, a destage or a read-ahead.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ArmRecord {
    /// What the arm works for.
    pub work: ArmWork,
    /// When its command was submitted: with the first block it identifies the command. `None` if the access is not a command's.
    pub submitted: Option<Instant>,
    /// The accessed blocks; of an access in several places, those of its command or the last run.
    pub blocks: Range<Lbn>,
    /// The cylinders of the seek.
    pub travel: Travel,
    /// The track on which the access ends.
    pub end_place: TrackPlace,
    /// When the arm starts to move.
    pub begins: Instant,
    /// Seek, head switch and settle.
    pub seek: Nanos,
    /// Rotational latency, lost revolutions included.
    pub rotational_latency: Nanos,
    /// Media transfer.
    pub media: Nanos,
    /// When the arm is free; of a read-ahead, when it ended or was cut off.
    pub ends: Instant,
    /// Number of commands that were outstanding when the access was chosen.
    pub outstanding: u32,
}

/// The records that have not been polled.
#[derive(Debug, Default)]
pub(super) struct ArmLog {
    records: VecDeque<ArmRecord>,
    pub(super) dropped: u64,
    /// Commands outstanding at the last choice.
    pub(super) outstanding: u32,
}

impl ArmLog {
    pub(super) fn poll(&mut self) -> Option<ArmRecord> {
        self.records.pop_front()
    }

    fn push(&mut self, record: ArmRecord) {
        if self.records.len() == RECORDS_MAX {
            self.records.pop_front();
            self.dropped += 1;
        }
        self.records.push_back(record);
    }

    /// Adds an access of a command, or of none, that was planned just now.
    pub(super) fn add(
        &mut self,
        work: ArmWork,
        submitted: Option<Instant>,
        blocks: Range<Lbn>,
        span: &Span,
        travel: Travel,
    ) {
        let duration = span.seek + span.rotation + span.media;
        self.push(ArmRecord {
            work,
            submitted,
            blocks,
            travel,
            end_place: span.last.place(),
            begins: span.end.saturating_sub(duration),
            seek: span.seek,
            rotational_latency: span.rotation,
            media: span.media,
            ends: span.end,
            outstanding: self.outstanding,
        });
    }

    /// Adds a read-ahead that ended. It needs no seek: it follows the access before it.
    pub(super) fn add_read_ahead(
        &mut self,
        blocks: Range<Lbn>,
        place: TrackPlace,
        (began, ends): (Instant, Instant),
    ) {
        let travel = Travel::to_track(place.cylinder, place);
        self.push(ArmRecord {
            work: ArmWork::ReadAhead,
            submitted: None,
            blocks,
            travel,
            end_place: place,
            begins: began,
            seek: Nanos::ZERO,
            rotational_latency: Nanos::ZERO,
            media: ends.since(began),
            ends,
            outstanding: self.outstanding,
        });
    }

    /// Delays the last added access by lost revolutions.
    pub(super) fn delay_last(&mut self, time: Nanos) {
        if let Some(last) = self.records.back_mut() {
            last.rotational_latency += time;
            last.ends += time;
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::{ArmWork, Device, DeviceOptions};
    use headstack_model::{Instant, Lbn, Op, Request, drives};

    /// Completions of scattered reads and writes, and the records of the arm where they are asked for.
    fn run(name: &str, is_logged: bool) -> (Vec<crate::Completion>, Vec<crate::device::ArmRecord>) {
        let spec = drives::load(name).expect("the drive is shipped");
        let options = DeviceOptions { seed: 3, depth: Some(8), order: Some("sptf".to_string()) };
        let mut device = Device::new(&spec, &options).expect("the drive is good");
        if is_logged {
            device.log_arm();
        }
        let (mut now, mut begun) = (Instant::ZERO, 0u64);
        let (mut completions, mut records) = (Vec::new(), Vec::new());
        while completions.len() < 300 {
            let lbn = Lbn(begun * 7_654_321 % (device.sectors() - 64));
            let request =
                if begun.is_multiple_of(3) { Request::write(lbn, 16) } else { Request::read(lbn, 16) };
            if begun < 300 && device.submit(now, request).is_ok() {
                begun += 1;
                continue;
            }
            now = device.poll_timeout().expect("commands are outstanding");
            device.handle_timeout(now);
            completions.extend(std::iter::from_fn(|| device.poll_completion()));
            records.extend(std::iter::from_fn(|| device.poll_arm_record()));
        }
        (completions, records)
    }

    #[test]
    fn log_of_the_arm_changes_no_completion() {
        for name in ["atlas-10k", "st2000dm006", "seagate-archive-8tb", "eagle-m2361a"] {
            let (logged, records) = run(name, true);
            let (unlogged, none) = run(name, false);
            assert_eq!(logged, unlogged, "{name}");
            assert!(!records.is_empty() && none.is_empty(), "{name}");
        }
    }

    #[test]
    fn records_of_commands_have_the_time_split_of_their_completions() {
        let (completions, records) = run("atlas-10k", true);
        let mut met = 0;
        for read in completions.iter().filter(|done| done.request.op == Op::Read && done.travel.is_some()) {
            let is_its = |record: &&crate::device::ArmRecord| {
                record.submitted == Some(read.submitted) && record.blocks.start == read.request.lbn
            };
            let record = records.iter().find(is_its).expect("each access of a command is recorded");
            assert_eq!(record.work, ArmWork::Read);
            assert_eq!(Some(record.travel), read.travel);
            assert_eq!((record.seek, record.media), (read.parts.seek, read.parts.media));
            assert_eq!(record.rotational_latency, read.parts.rotational_latency + read.parts.retries);
            assert!(record.ends <= read.completed && record.begins >= read.submitted);
            met += 1;
        }
        assert!(met > 100, "{met} reads");
    }

    #[test]
    fn arm_works_for_one_access_at_a_time() {
        for name in ["atlas-10k", "st2000dm006"] {
            let (_, records) = run(name, true);
            for pair in records.windows(2) {
                assert!(pair[0].ends <= pair[1].begins, "{name}: {pair:?}");
            }
        }
    }
}
