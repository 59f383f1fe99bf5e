//! Detects a disk that fails slowly, from the times of its commands alone.
//!
//! Two signs count, each over windows in which the disk was busy for ten seconds:
//!
//! * **Late commands**: a command that took the disk longer than the worst access of a sound one. The disk is slow when the time beyond
//!   that is 2 % of the busy time of the last twelve windows, in at least two of them.
//! * **Slowdown**: how much longer reads take than reads of their class took at first: classes differ in distance from the last
//!   command, size, place on the disk, queue length, and whether there are writes. The disk is slow when this is 1.5 or more over the
//!   last three windows. A disk that was slow from the start shows no slowdown.
//!
//! The alarm ends when neither sign has held for three windows. The time that a command takes the disk is that from its start or the
//! disk's last completion, whichever is later, to its completion. Published detectors compare a disk with its peers in a RAID group, where
//! twice as slow counts (Hao and others, FAST 2016), or with its own latency at the same throughput (Lu and others, FAST 2023). A node
//! knows place and size of every command, so that a change of load does not look like a slow disk.

use headstack_model::{Instant, Nanos, QuantityReport};
use std::collections::VecDeque;

/// A command that a disk has completed.
#[derive(Clone, Copy, Debug)]
pub struct CompletedCommand {
    /// When the disk got it.
    pub begun: Instant,
    /// Whether it reads; else it writes.
    pub is_read: bool,
    /// First byte.
    pub offset: u64,
    /// Bytes.
    pub bytes: u64,
    /// Commands at the disk when it was completed, itself included.
    pub outstanding: usize,
}

/// The worst access of a sound disk.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct WorstAccess {
    /// Longest time from one transfer to another, with some retries.
    pub positioning: Nanos,
    /// Least transfer rate in bytes a second.
    pub bandwidth: u64,
}

impl Default for WorstAccess {
    /// 100 ms and 20 MB/s: without retries, no disk of the last twenty years is slower.
    fn default() -> WorstAccess {
        WorstAccess { positioning: Nanos(100_000_000), bandwidth: 20_000_000 }
    }
}

/// What a detector has found.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct SlownessView {
    /// Whether the disk is slow.
    pub is_slow: bool,
    /// Alarms so far.
    pub alarms: u64,
    /// Commands that were late so far.
    pub late: u64,
    /// Time by which late commands exceeded the worst access, in all.
    pub late_time: Nanos,
    /// Share of the busy time that late commands lost in the last twelve windows.
    pub late_share: f64,
    /// Time of reads as a multiple of that of the first reads of their class, over the last three windows; 1 before there are enough reads.
    pub slowdown: f64,
}

impl SlownessView {
    /// Adds the signs.
    pub fn report(&self, into: &mut QuantityReport) {
        into.gauge("slow", self.is_slow, "Whether the disk fails slowly");
        into.counter("alarms", self.alarms, "Times that the disk began to fail slowly").metric("slow_alarms");
        let help = "Commands that took longer than the worst access of a sound disk";
        into.counter("late_commands", self.late, help);
        into.counter("late_s", self.late_time, "Time that late commands took beyond the worst access");
        let help = "Share of the busy time of the last two minutes that late commands lost";
        into.share("late_share", self.late_share, help);
        into.gauge("slowdown", self.slowdown, "How many times as long as at first reads take");
    }
}

/// Watches a disk's commands and says when the disk is slow.
#[derive(Clone, Debug)]
pub struct SlownessDetector {
    worst: WorstAccess,
    disk_bytes: u64,
    last_end: Instant,
    last_place: u64,
    /// Of the last commands, a bit each: whether it was a write.
    writes: u16,
    usual: Vec<Usual>,
    window: BusyWindow,
    /// The last windows, oldest first.
    windows: VecDeque<BusyWindow>,
    sound_windows: u32,
    view: SlownessView,
}

/// The time of the first reads of a class.
#[derive(Clone, Copy, Debug, Default)]
struct Usual {
    reads: u32,
    sum: Nanos,
}

#[derive(Clone, Copy, Debug, Default)]
struct BusyWindow {
    busy: Nanos,
    lost: Nanos,
    /// Reads of known classes, the time that they took, and the time that they took at first.
    reads: u32,
    took: Nanos,
    expected: f64,
}

const WINDOW: Nanos = Nanos::from_secs(10);
/// Windows over which late commands count, the share of their time, and windows that must have some.
const LATE_WINDOWS: usize = 12;
const LATE_SHARE: f64 = 0.02;
const WITH_LATE: usize = 2;
/// Windows over which the slowdown counts, the least number of reads in them, and what is slow.
const SLOWDOWN_WINDOWS: usize = 3;
const SLOWDOWN_READS: u32 = 100;
const SLOWDOWN: f64 = 1.5;
/// Windows without a sign after which an alarm ends.
const SOUND_WINDOWS: u32 = 3;
/// Reads of a class from which its usual time comes.
const LEARNT: u32 = 200;

/// Upper ends of the classes of distance, as shares of the disk; a distance of 0 is a separate class.
const DISTANCES: [f64; 3] = [0.001, 0.01, 0.1];
/// Upper ends of the classes of size, and of queue length.
const SIZES: [u64; 3] = [32 << 10, 256 << 10, 1 << 20];
const QUEUES: [u64; 3] = [1, 4, 16];
/// Classes of place, for the zones of a disk.
const PLACES: u64 = 8;
const CLASSES: usize = (DISTANCES.len() + 2) * (SIZES.len() + 1) * (QUEUES.len() + 1) * PLACES as usize * 2;

fn rank<T: PartialOrd>(value: T, upper_ends: &[T]) -> usize {
    upper_ends.partition_point(|end| *end < value)
}

impl SlownessDetector {
    /// A detector for a disk of this size in bytes.
    pub fn new(worst: WorstAccess, disk_bytes: u64) -> SlownessDetector {
        SlownessDetector {
            worst,
            disk_bytes: disk_bytes.max(1),
            last_end: Instant::ZERO,
            last_place: 0,
            writes: 0,
            usual: vec![Usual::default(); CLASSES],
            window: BusyWindow::default(),
            windows: VecDeque::with_capacity(LATE_WINDOWS),
            sound_windows: 0,
            view: SlownessView { slowdown: 1.0, ..SlownessView::default() },
        }
    }

    /// The state of the detector.
    pub fn view(&self) -> SlownessView {
        self.view
    }

    /// Records that the disk completed a command at `now`. Returns whether an alarm began or ended.
    pub fn completed(&mut self, now: Instant, command: CompletedCommand) -> bool {
        let took = now.since(command.begun.max(self.last_end));
        let class = self.class_of(&command);
        self.writes = self.writes << 1 | u16::from(!command.is_read);
        self.last_end = now;
        self.last_place = command.offset + command.bytes;
        self.window.busy += took;
        let lost = took.saturating_sub(self.longest(command.bytes));
        if lost > Nanos::ZERO {
            self.view.late += 1;
            self.view.late_time += lost;
            self.window.lost += lost;
        }
        if command.is_read {
            self.compare(class, took.saturating_sub(lost));
        }
        self.window.busy >= WINDOW && self.end_window()
    }

    /// Records that the disk completed a command at `now` that neither reads nor writes.
    pub fn completed_other(&mut self, now: Instant) {
        self.last_end = now;
    }

    fn longest(&self, bytes: u64) -> Nanos {
        let transfer = bytes as f64 / self.worst.bandwidth.max(1) as f64;
        self.worst.positioning + Nanos::from_ms(transfer * 1e3)
    }

    fn class_of(&self, command: &CompletedCommand) -> usize {
        let distance = command.offset.abs_diff(self.last_place);
        let distance = match distance {
            0 => 0,
            bytes => 1 + rank(bytes as f64 / self.disk_bytes as f64, &DISTANCES),
        };
        let place = u128::from(command.offset.min(self.disk_bytes - 1)) * u128::from(PLACES);
        let parts = [
            (rank(command.bytes, &SIZES), SIZES.len() + 1),
            (rank(command.outstanding as u64, &QUEUES), QUEUES.len() + 1),
            ((place / u128::from(self.disk_bytes)) as usize, PLACES as usize),
            (usize::from(self.writes != 0), 2),
        ];
        parts.into_iter().fold(distance, |index, (part, count)| index * count + part)
    }

    /// Compares a read with the first reads of its class, or adds it to them.
    fn compare(&mut self, class: usize, took: Nanos) {
        let usual = &mut self.usual[class];
        if usual.reads < LEARNT {
            usual.reads += 1;
            usual.sum += took;
            return;
        }
        self.window.reads += 1;
        self.window.took += took;
        self.window.expected += usual.sum.0 as f64 / f64::from(usual.reads);
    }

    fn end_window(&mut self) -> bool {
        if self.windows.len() == LATE_WINDOWS {
            self.windows.pop_front();
        }
        self.windows.push_back(std::mem::take(&mut self.window));
        let total =
            |part: fn(&BusyWindow) -> Nanos| self.windows.iter().map(|window| part(window).0).sum::<u64>();
        self.view.late_share = total(|window| window.lost) as f64 / total(|window| window.busy).max(1) as f64;
        self.view.slowdown = self.slowdown();
        let with_late = self.windows.iter().filter(|window| window.lost > Nanos::ZERO).count();
        let loses_time = self.view.late_share >= LATE_SHARE && with_late >= WITH_LATE;
        self.judge(loses_time || self.view.slowdown >= SLOWDOWN)
    }

    fn slowdown(&self) -> f64 {
        let (mut reads, mut took, mut expected) = (0, 0.0, 0.0);
        for window in self.windows.iter().rev().take(SLOWDOWN_WINDOWS) {
            reads += window.reads;
            took += window.took.0 as f64;
            expected += window.expected;
        }
        if reads < SLOWDOWN_READS { 1.0 } else { took / expected.max(1.0) }
    }

    fn judge(&mut self, has_sign: bool) -> bool {
        self.sound_windows = if has_sign { 0 } else { self.sound_windows + 1 };
        let is_slow = has_sign || self.view.is_slow && self.sound_windows < SOUND_WINDOWS;
        let changes = is_slow != self.view.is_slow;
        self.view.alarms += u64::from(changes && is_slow);
        self.view.is_slow = is_slow;
        changes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GIB: u64 = 1 << 30;

    /// A disk whose reads take a time that `time` gives by number; one at a time, at places that jump over the disk.
    fn watch(detector: &mut SlownessDetector, now: &mut Instant, reads: u64, time: impl Fn(u64) -> f64) {
        for read in 0..reads {
            let begun = *now;
            *now += Nanos::from_ms(time(read));
            let offset = read * 7919 % 1000 * (GIB / 1000);
            let command = CompletedCommand { begun, is_read: true, offset, bytes: 4096, outstanding: 1 };
            detector.completed(*now, command);
        }
    }

    #[test]
    fn slowdown_alarm_begins_and_ends_with_the_slowness() {
        let mut detector = SlownessDetector::new(WorstAccess::default(), GIB);
        let mut now = Instant::ZERO;
        watch(&mut detector, &mut now, 20_000, |read| 8.0 + (read % 5) as f64);
        assert_eq!((detector.view().alarms, detector.view().late), (0, 0));
        assert!((detector.view().slowdown - 1.0).abs() < 0.05, "{:?}", detector.view());
        watch(&mut detector, &mut now, 5_000, |read| 2.0 * (8.0 + (read % 5) as f64));
        assert!(
            detector.view().is_slow && (detector.view().slowdown - 2.0).abs() < 0.1,
            "{:?}",
            detector.view()
        );
        watch(&mut detector, &mut now, 10_000, |read| 8.0 + (read % 5) as f64);
        let view = detector.view();
        assert!(!view.is_slow && view.alarms == 1 && view.late == 0, "{view:?}");
    }

    #[test]
    fn one_long_retry_is_no_alarm_and_repeated_stalls_are() {
        let mut detector = SlownessDetector::new(WorstAccess::default(), GIB);
        let mut now = Instant::ZERO;
        watch(&mut detector, &mut now, 20_000, |read| if read == 15_000 { 7000.0 } else { 10.0 });
        let view = detector.view();
        assert!(!view.is_slow && view.alarms == 0 && view.late == 1, "{view:?}");
        assert_eq!(view.late_time, Nanos::from_ms(7000.0 - 100.0 - 4096.0 / 20e3));
        watch(&mut detector, &mut now, 20_000, |read| if read % 5000 == 4999 { 3000.0 } else { 10.0 });
        assert!(detector.view().is_slow && detector.view().slowdown < 1.1, "{:?}", detector.view());
    }

    #[test]
    fn change_of_load_is_no_slowdown() {
        let mut detector = SlownessDetector::new(WorstAccess::default(), GIB);
        let mut now = Instant::ZERO;
        for round in 0..40u64 {
            for read in 0..2000u64 {
                let is_near = round % 2 == 0;
                let offset = if is_near { read % 2 * (GIB / 2000) } else { read % 2 * (GIB / 2) };
                let begun = now;
                now += Nanos::from_ms(if is_near { 5.0 } else { 15.0 });
                let command = CompletedCommand { begun, is_read: true, offset, bytes: 4096, outstanding: 1 };
                detector.completed(now, command);
            }
        }
        assert_eq!(detector.view().alarms, 0, "{:?}", detector.view());
    }
}
