//! Statistics of a process: its think time, and the distance of its jumps. The elevators that idle for a process decide with them
//! whether waiting pays.
//!
//! *Source:* the decaying means of Linux's as-iosched, cfq-iosched and bfq-iosched (weight 1/8 for the newest sample).

use headstack_model::{Instant, Nanos};
use std::collections::BTreeMap;
use std::ops::{Deref, DerefMut};

/// A decaying mean: the newest sample weighs an eighth.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Decaying {
    /// 256 once there were many samples.
    samples: u64,
    total: u64,
}

impl Decaying {
    pub(super) fn add(&mut self, sample: u64) {
        self.samples = (7 * self.samples + 256) / 8;
        self.total = (7 * self.total + 256 * sample) / 8;
    }

    pub(super) fn mean(&self) -> Option<u64> {
        self.total.checked_div(self.samples)
    }
}

/// The time between a process's last completion and its next request.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Think {
    ended: Option<Instant>,
    time: Decaying,
}

impl Think {
    pub(super) fn end(&mut self, now: Instant) {
        self.ended = Some(now);
    }

    /// Records that a request of the process arrived. Think times beyond `most` count as `most`.
    pub(super) fn note_arrival(&mut self, now: Instant, most: Nanos) {
        if let Some(ended) = self.ended {
            self.time.add(now.since(ended).min(most).0);
        }
    }

    /// Whether the process's mean think time exceeds `wait`. Without samples it does not.
    pub(super) fn exceeds(&self, wait: Nanos) -> bool {
        self.time.mean().is_some_and(|mean| mean > wait.0)
    }
}

/// Which of the last 32 requests of a process lay far from the one before.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Jumps {
    last: Option<u64>,
    far: u32,
}

impl Jumps {
    /// Blocks beyond which a request is far (`CFQQ_SEEK_THR`, `BFQQ_SEEK_THR`).
    const FAR: u64 = 800;

    /// Records a request of the process, from `lbn` up to `end`.
    pub(super) fn note_request(&mut self, lbn: u64, end: u64) {
        let far = self.last.is_some_and(|last| lbn.abs_diff(last) > Jumps::FAR);
        self.far = (self.far << 1) | u32::from(far);
        self.last = Some(end);
    }

    /// Whether more than `most` of the last 32 were far.
    pub(super) fn exceed(&self, most: u32) -> bool {
        self.far.count_ones() > most
    }
}

/// A value for each process that was met, by the key of its queue.
#[derive(Debug)]
pub(super) struct ByProcess<T> {
    values: Vec<T>,
    slots: BTreeMap<u64, usize>,
}

impl<T> ByProcess<T> {
    pub(super) fn new() -> ByProcess<T> {
        ByProcess { values: Vec::new(), slots: BTreeMap::new() }
    }

    /// The slot of `key`, whose value is made by `new` when it is first met.
    pub(super) fn slot_of(&mut self, key: u64, new: impl FnOnce() -> T) -> usize {
        *self.slots.entry(key).or_insert_with(|| {
            self.values.push(new());
            self.values.len() - 1
        })
    }
}

impl<T> Deref for ByProcess<T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        &self.values
    }
}

impl<T> DerefMut for ByProcess<T> {
    fn deref_mut(&mut self) -> &mut [T] {
        &mut self.values
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decaying_mean_follows_the_samples() {
        let mut mean = Decaying::default();
        assert_eq!(mean.mean(), None);
        (0..40).for_each(|_| mean.add(1000));
        assert!(mean.mean().is_some_and(|mean| mean.abs_diff(1000) < 40), "{mean:?}");
        (0..40).for_each(|_| mean.add(0));
        assert!(mean.mean().is_some_and(|mean| mean < 20), "{mean:?}");
    }

    #[test]
    fn stream_jumps_are_short_and_scattered_jumps_long() {
        let (mut stream, mut scatter) = (Jumps::default(), Jumps::default());
        for index in 0..40u64 {
            stream.note_request(index * 8, index * 8 + 8);
            scatter.note_request(index * 1_000_003 % 777_777, index * 1_000_003 % 777_777 + 8);
        }
        assert!(!stream.exceed(0) && scatter.exceed(19));
    }
}
