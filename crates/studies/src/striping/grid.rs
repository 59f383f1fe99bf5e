//! The study's grid: its runs, and the values derived from them.

use super::cell::{Buffer, Point, StripedRun};
use crate::study::Length;
use headstack_model::Nanos;
use headstack_policy::stripe::advise::{self, DiskTimes, ForkJoin, Observed, Question, Size};

/// Responses within this share of the least count as equal. The largest of their units is then called best, as in the study, which does not
/// define how close is equal. Chosen before the first run.
pub(super) const ALIKE: f64 = 0.02;

pub(super) const DISKS: u32 = 4;

/// A kind of load, without request size and MPL.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Kind {
    pub name: &'static str,
    pub disks: u32,
    pub buffer: Buffer,
    pub read_share: f64,
    pub sequential_share: f64,
    pub think: Nanos,
}

/// Random reads without a pause on the study's array.
pub(super) const READS: Kind = Kind {
    name: "random reads",
    disks: DISKS,
    buffer: Buffer::None,
    read_share: 1.0,
    sequential_share: 0.0,
    think: Nanos::ZERO,
};

pub(super) const WRITES: Kind = Kind { name: "random writes", read_share: 0.0, ..READS };

pub(super) const SEQUENTIAL: Kind = Kind { name: "sequential writes", sequential_share: 1.0, ..WRITES };

/// Random reads with think times; each in ms.
pub(super) const THINKING: [Kind; 3] = [
    Kind { name: "random reads, 10 ms between", think: Nanos(10_000_000), ..READS },
    Kind { name: "random reads, 100 ms between", think: Nanos(100_000_000), ..READS },
    Kind { name: "random reads, 1 s between", think: Nanos(1_000_000_000), ..READS },
];

/// With the drives' buffers on.
pub(super) const BUFFERED: [Kind; 4] = [
    Kind { name: "random reads, buffered", buffer: Buffer::Both, ..READS },
    Kind { name: "random writes, buffered", buffer: Buffer::Both, ..WRITES },
    Kind { name: "sequential reads, buffered", buffer: Buffer::Both, sequential_share: 1.0, ..READS },
    Kind { name: "sequential writes, buffered", buffer: Buffer::Both, ..SEQUENTIAL },
];

/// On larger arrays.
pub(super) const LARGER: [Kind; 2] = [
    Kind { name: "random reads, 8 disks", disks: 8, ..READS },
    Kind { name: "random reads, 16 disks", disks: 16, ..READS },
];

/// The kinds of the study's own grid.
pub(super) fn of_the_study() -> Vec<Kind> {
    let mut kinds = vec![READS, WRITES, SEQUENTIAL];
    kinds.extend(THINKING);
    kinds
}

/// Sizes of requests in blocks: 2 KB to 4 MB, in the short form those of the study's table.
pub(super) fn requests(length: Length) -> Vec<u64> {
    let powers = 2..=13;
    let in_short = [2, 4, 6, 8, 10, 11, 12, 13];
    powers
        .filter(|power| length == Length::Full || in_short.contains(power))
        .map(|power| 1 << power)
        .collect()
}

pub(super) fn mpls(length: Length) -> &'static [u32] {
    length.pick(&[1, 2, 4, 8, 12, 16, 20], &[1, 2, 8])
}

pub(super) fn points(kind: &Kind, length: Length) -> Vec<Point> {
    let mut all = Vec::new();
    for request in requests(length) {
        for mpl in mpls(length) {
            for across in (0..).map(|power| 1 << power).take_while(|across| *across <= kind.disks) {
                if request >= u64::from(across) {
                    all.push(Point {
                        disks: kind.disks,
                        buffer: kind.buffer,
                        read_share: kind.read_share,
                        sequential_share: kind.sequential_share,
                        think: kind.think,
                        mpl: *mpl,
                        request,
                        across,
                    });
                }
            }
        }
    }
    all
}

/// The runs of one request size and MPL, over increasing numbers of disks.
#[derive(Clone, Debug)]
pub(super) struct Row {
    pub request: u64,
    pub mpl: u32,
    pub runs: Vec<StripedRun>,
}

impl Row {
    /// Puts the outcomes of [`points`] together.
    pub(super) fn gather(outcomes: &[StripedRun]) -> Vec<Row> {
        let same =
            |a: &StripedRun, b: &StripedRun| (a.point.request, a.point.mpl) == (b.point.request, b.point.mpl);
        let row = |runs: &[StripedRun]| Row {
            request: runs[0].point.request,
            mpl: runs[0].point.mpl,
            runs: runs.to_vec(),
        };
        outcomes.chunk_by(same).map(row).collect()
    }

    /// The run over `across` disks.
    pub(super) fn over(&self, across: u32) -> Option<&StripedRun> {
        self.runs.iter().find(|run| run.point.across == across)
    }

    fn least_ms(&self) -> f64 {
        self.runs.iter().map(|run| run.response_ms).fold(f64::INFINITY, f64::min)
    }

    /// The best run; among equal ones, the one with the largest unit.
    pub(super) fn best(&self) -> &StripedRun {
        let least = self.least_ms();
        let alike = self.runs.iter().find(|run| run.response_ms <= least * (1.0 + ALIKE));
        alike.expect("the least is alike itself")
    }

    /// By what share the response over `across` disks exceeds the shortest.
    pub(super) fn regret(&self, across: u32) -> f64 {
        self.over(across).map_or(f64::NAN, |run| run.response_ms / self.least_ms() - 1.0)
    }

    /// The number of disks of a request when the unit is `unit` blocks, rounded to the nearest power of two.
    pub(super) fn across(&self, unit: f64) -> u32 {
        let unit = 2f64.powf(unit.log2().round());
        let wanted = (self.request as f64 / unit).ceil();
        let most = self.runs.last().map_or(1, |run| run.point.across);
        (wanted as u32).clamp(1, most)
    }

    /// The unit by a published rule, in blocks.
    pub(super) fn rule(&self, name: &str, disk: &DiskTimes) -> f64 {
        let entry = advise::by_name(name).expect("the rule is listed");
        let question = Question {
            disk,
            disks: self.runs[0].point.disks,
            concurrency: f64::from(self.mpl),
            request_sectors: self.request as f64,
            parity_writes: None,
            alignment: None,
        };
        entry.unit(&question)
    }

    /// The number of disks over which our advisor spreads requests, from its observation of a run.
    pub(super) fn ours(&self, advisor: &ForkJoin, seen: &StripedRun) -> u32 {
        let sizes = [Size { sectors: self.request as f64, share: 1.0 }];
        let load = Observed { sizes: &sizes, others: seen.others, unit: seen.point.unit() };
        let unit = advisor.choose(&load, self.runs.iter().map(|run| run.point.unit()));
        (self.request / unit) as u32
    }

    /// The largest regret of our advisor over all units with which it may start: after its first choice, and after it has observed its own
    /// choices and settled.
    pub(super) fn our_regret(&self, advisor: &ForkJoin) -> [f64; 2] {
        let mut worst = [0.0f64; 2];
        for start in &self.runs {
            let first = self.ours(advisor, start);
            let mut settled = first;
            for _ in 0..3 {
                settled = self.over(settled).map_or(settled, |seen| self.ours(advisor, seen));
            }
            for (worst, across) in worst.iter_mut().zip([first, settled]) {
                *worst = worst.max(self.regret(across));
            }
        }
        worst
    }
}
