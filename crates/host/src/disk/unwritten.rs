//! The dirty data of a drive: what a power cut loses.
//!
//! An access writes to the media what the cache held when the access began. Overwritten data therefore stay here, under the
//! newer data, until the model says which version was written; each run has the time at which the drive accepted it. Data accepted at
//! the same time are not distinguished. Nor are further versions once [`Unwritten::OLDER`] runs are kept: the newer data then
//! count as accepted at the older ones' time.

use headstack_model::Instant;
use std::collections::BTreeMap;
use std::mem;

/// The bytes of a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Content {
    Data(Vec<u8>),
    Zeros {
        bytes: u64,
        /// Whether they may become a hole.
        may_trim: bool,
    },
}

impl Content {
    pub(super) fn bytes(&self) -> u64 {
        match self {
            Content::Data(data) => data.len() as u64,
            Content::Zeros { bytes, .. } => *bytes,
        }
    }

    fn room(&self) -> u64 {
        match self {
            Content::Data(data) => data.len() as u64,
            Content::Zeros { .. } => 0,
        }
    }

    fn split_off(&mut self, at: u64) -> Content {
        match self {
            Content::Data(data) => Content::Data(data.split_off(at as usize)),
            Content::Zeros { bytes, may_trim } => {
                let rest = *bytes - at;
                *bytes = at;
                Content::Zeros { bytes: rest, may_trim: *may_trim }
            }
        }
    }

    fn copy(&self, from: u64, into: &mut [u8]) {
        match self {
            Content::Data(data) => into.copy_from_slice(&data[from as usize..][..into.len()]),
            Content::Zeros { .. } => into.fill(0),
        }
    }
}

#[derive(Clone, Debug)]
pub(super) struct Run {
    pub(super) first: u64,
    pub(super) content: Content,
    since: Instant,
}

impl Run {
    fn end(&self) -> u64 {
        self.first + self.content.bytes()
    }

    fn touches(&self, start: u64, end: u64) -> bool {
        self.first < end && start < self.end()
    }

    fn split_off(&mut self, at: u64) -> Run {
        Run { first: at, content: self.content.split_off(at - self.first), since: self.since }
    }

    /// Removes the parts before `start` and from `end` on, and returns them.
    fn cut(&mut self, start: u64, end: u64) -> impl Iterator<Item = Run> + use<> {
        let after = (self.end() > end).then(|| self.split_off(end));
        let before = (self.first < start).then(|| {
            let rest = self.split_off(start);
            mem::replace(self, rest)
        });
        before.into_iter().chain(after)
    }
}

/// Runs of bytes: the youngest of each block, and the overwritten ones.
#[derive(Debug, Default)]
pub(super) struct Unwritten {
    /// The youngest runs by first byte; they do not overlap.
    runs: BTreeMap<u64, Run>,
    /// Overwritten runs, older before younger; no byte has two runs of the same time.
    older: Vec<Run>,
    bytes: u64,
    room: u64,
}

impl Unwritten {
    /// Longest run of data in bytes, which bounds the copying when a run is cut.
    const CHUNK: usize = 64 << 10;

    /// Maximum number of overwritten runs.
    const OLDER: usize = 256;

    /// Number of dirty bytes, each counted once.
    pub(super) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Memory taken by the data; zeros take none.
    pub(super) fn room(&self) -> u64 {
        self.room + self.older.iter().map(|run| run.content.room()).sum::<u64>()
    }

    /// Inserts bytes taken at `now` over older ones.
    pub(super) fn insert(&mut self, now: Instant, offset: u64, content: Content) {
        let (end, mut since) = (offset + content.bytes(), now);
        for run in self.take_youngest(offset, end, Instant::MAX) {
            if run.since < now && self.older.len() < Unwritten::OLDER {
                self.older.push(run);
            } else {
                since = since.min(run.since);
            }
        }
        if since < now {
            self.take_older(offset, end, |other| other >= since);
        }
        match content {
            Content::Data(mut data) if data.len() > Unwritten::CHUNK => {
                // From the end, so that the memory of the whole is freed as the chunks get their own.
                while !data.is_empty() {
                    let from = (data.len() - 1) / Unwritten::CHUNK * Unwritten::CHUNK;
                    let chunk = Content::Data(data[from..].to_vec());
                    data.truncate(from);
                    data.shrink_to_fit();
                    self.put(Run { first: offset + from as u64, content: chunk, since });
                }
            }
            content if content.bytes() > 0 => self.put(Run { first: offset, content, since }),
            _ => {}
        }
    }

    /// What reaches the media in `start..end` when a drive writes what it had taken by `until`: the youngest such run of each
    /// byte. It and all older ones are removed.
    pub(super) fn settle(&mut self, start: u64, end: u64, until: Instant) -> Vec<Run> {
        let mut settled = self.take_youngest(start, end, until);
        for run in &settled {
            self.take_older(run.first, run.end(), |_| true);
        }
        let mut youngest = Unwritten::default();
        for run in self.take_older(start, end, |since| since <= until) {
            youngest.insert(Instant::ZERO, run.first, run.content);
        }
        settled.extend(youngest.runs.into_values());
        settled
    }

    pub(super) fn remove(&mut self, start: u64, end: u64) {
        self.settle(start, end, Instant::MAX);
    }

    /// Copies the youngest data over bytes that were read from `offset` on.
    pub(super) fn overlay(&self, offset: u64, read: &mut [u8]) {
        let end = offset + read.len() as u64;
        for (from, to, run) in self.touching(offset, end) {
            run.content.copy(from - run.first, &mut read[(from - offset) as usize..(to - offset) as usize]);
        }
    }

    /// The runs that touch `start..end`, cut to it, the last one first.
    pub(super) fn within(&self, start: u64, end: u64) -> impl Iterator<Item = (u64, u64)> + '_ {
        self.touching(start, end).map(|(from, to, _)| (from, to))
    }

    fn touching(&self, start: u64, end: u64) -> impl Iterator<Item = (u64, u64, &Run)> {
        let before_end = self.runs.range(..end).rev().map(|(_, run)| run);
        let touching = before_end.take_while(move |run| run.end() > start);
        touching.map(move |run| (run.first.max(start), run.end().min(end), run))
    }

    fn put(&mut self, run: Run) {
        self.bytes += run.content.bytes();
        self.room += run.content.room();
        self.runs.insert(run.first, run);
    }

    /// Removes and returns the youngest runs of `start..end` that were taken by `until`.
    fn take_youngest(&mut self, start: u64, mut end: u64, until: Instant) -> Vec<Run> {
        let mut taken = Vec::new();
        while let Some((&first, run)) = self.runs.range(..end).next_back() {
            if !run.touches(start, end) {
                break;
            }
            if run.since <= until {
                let mut run = self.runs.remove(&first).expect("it was just there");
                self.bytes -= run.content.bytes();
                self.room -= run.content.room();
                run.cut(start, end).for_each(|rest| self.put(rest));
                taken.push(run);
            }
            end = first;
        }
        taken
    }

    /// Removes and returns overwritten runs of `start..end` of wanted times, in their order.
    fn take_older(&mut self, start: u64, end: u64, wanted: impl Fn(Instant) -> bool) -> Vec<Run> {
        let mut taken = Vec::new();
        if !self.older.iter().any(|run| run.touches(start, end) && wanted(run.since)) {
            return taken;
        }
        for mut run in mem::take(&mut self.older) {
            if run.touches(start, end) && wanted(run.since) {
                self.older.extend(run.cut(start, end));
                taken.push(run);
            } else {
                self.older.push(run);
            }
        }
        taken
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[derive(Clone, Debug)]
    enum Step {
        Insert { zeros: bool },
        Settle { ago: u64 },
        Remove,
    }

    fn step() -> impl Strategy<Value = (Step, u64, u64, u64)> {
        let step = prop_oneof![
            4 => any::<bool>().prop_map(|zeros| Step::Insert { zeros }),
            4 => (0u64..12).prop_map(|ago| Step::Settle { ago }),
            1 => Just(Step::Remove),
        ];
        (step, 0u64..60, 0u64..12, 0u64..3)
    }

    proptest! {
        /// The reference keeps all versions of each byte, the oldest first.
        #[test]
        fn unwritten_data_matches_an_array_of_versions(steps in prop::collection::vec(step(), 1..40)) {
            let (mut unwritten, mut now) = (Unwritten::default(), 0);
            let mut plain: Vec<Vec<(u64, u8)>> = vec![Vec::new(); 80];
            for (number, (step, offset, length, pause)) in steps.into_iter().enumerate() {
                now += pause;
                let end = offset + length;
                let range = offset as usize..end as usize;
                match step {
                    Step::Insert { zeros } => {
                        let byte = if zeros { 0 } else { number as u8 + 1 };
                        let data = Content::Data(vec![byte; length as usize]);
                        let content = if zeros { Content::Zeros { bytes: length, may_trim: true } } else { data };
                        unwritten.insert(Instant(now), offset, content);
                        for versions in &mut plain[range] {
                            versions.retain(|(since, _)| *since < now);
                            versions.push((now, byte));
                        }
                    }
                    Step::Settle { ago } => {
                        let until = now.saturating_sub(ago);
                        let (mut stored, mut expected) = ([None; 80], [None; 80]);
                        for run in unwritten.settle(offset, end, Instant(until)) {
                            let mut bytes = vec![9; run.content.bytes() as usize];
                            run.content.copy(0, &mut bytes);
                            let places = &mut stored[run.first as usize..run.end() as usize];
                            places.iter_mut().zip(bytes).for_each(|(place, byte)| *place = Some(byte));
                        }
                        for place in range {
                            let younger = plain[place].partition_point(|(since, _)| *since <= until);
                            expected[place] = plain[place].drain(..younger).next_back().map(|(_, byte)| byte);
                        }
                        prop_assert_eq!(stored, expected);
                    }
                    Step::Remove => {
                        unwritten.remove(offset, end);
                        plain[range].iter_mut().for_each(Vec::clear);
                    }
                }
                let mut read = vec![255; 80];
                unwritten.overlay(0, &mut read);
                let youngest = |versions: &Vec<(u64, u8)>| versions.last().map_or(255, |(_, byte)| *byte);
                prop_assert_eq!(read, plain.iter().map(youngest).collect::<Vec<_>>());
                let count = |places: &[Vec<(u64, u8)>]| places.iter().filter(|place| !place.is_empty()).count() as u64;
                prop_assert_eq!(unwritten.bytes(), count(&plain));
                let held: u64 = unwritten.within(5, 50).map(|(from, to)| to - from).sum();
                prop_assert_eq!(held, count(&plain[5..50]));
                let data = plain.iter().flatten().filter(|(_, byte)| *byte != 0).count() as u64;
                prop_assert_eq!(unwritten.room(), data);
            }
        }
    }

    #[test]
    fn block_written_repeatedly_takes_bounded_memory() {
        let mut unwritten = Unwritten::default();
        for turn in 0..10_000u64 {
            unwritten.insert(Instant(turn), 0, Content::Data(vec![turn as u8; 512]));
        }
        assert!(unwritten.room() <= 512 * (Unwritten::OLDER as u64 + 1), "{}", unwritten.room());
        // The first ones are still distinguished; of the last, the youngest stands for all.
        assert_eq!(unwritten.settle(0, 512, Instant(7))[0].content, Content::Data(vec![7; 512]));
        assert_eq!(
            unwritten.settle(0, 512, Instant(9_000))[0].content,
            Content::Data(vec![9_999u64 as u8; 512])
        );
        assert_eq!((unwritten.bytes(), unwritten.room()), (0, 0));
    }

    #[test]
    fn long_data_is_split_and_zeros_take_no_memory() {
        let mut unwritten = Unwritten::default();
        unwritten.insert(Instant(1), 100, Content::Data(vec![1; 1 << 20]));
        assert!(unwritten.runs.values().all(|run| run.content.bytes() <= Unwritten::CHUNK as u64));
        assert_eq!(unwritten.bytes(), 1 << 20);
        unwritten.insert(Instant(1), 0, Content::Zeros { bytes: 1 << 40, may_trim: false });
        assert_eq!((unwritten.bytes(), unwritten.room(), unwritten.runs.len()), (1 << 40, 0, 1));
    }
}
