//! The relations, each with a name, the loads that it is about and its judgement.

mod accounts;
mod buffered;
mod caches;
mod flushes;
mod sharing;
mod streams;
mod waiting;

use crate::bench::{Bench, Figures, Machine};
use crate::draw::Draw;
use crate::job_text::JobText;

/// A machine with a load, and the seed of all random numbers of its runs.
#[derive(Clone, Debug)]
pub(crate) struct Case {
    pub(crate) machine: Machine,
    pub(crate) load: JobText,
    pub(crate) seed: u64,
}

impl Case {
    fn new(machine: Machine, load: JobText) -> Case {
        Case { machine, load, seed: 1 }
    }

    /// The figures of the case.
    fn figures(&self, bench: &mut Bench) -> Result<Figures, String> {
        bench.run(&self.machine, &self.load, self.seed)
    }

    /// The figures of another load on the same machine.
    fn figures_of(&self, bench: &mut Bench, load: &JobText) -> Result<Figures, String> {
        bench.run(&self.machine, load, self.seed)
    }

    /// The figures of the same load on another machine.
    fn figures_on(&self, bench: &mut Bench, machine: &Machine) -> Result<Figures, String> {
        bench.run(machine, &self.load, self.seed)
    }
}

/// What a relation says of a case.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Verdict {
    /// It holds.
    Holds,
    /// It is not about such a case, as a smaller form may be.
    Elsewhere,
    /// It does not hold.
    Broken(Violation),
}

/// How a relation is broken.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Violation {
    /// The bound over the figure, or the figure over the bound: more than 1.
    pub(crate) severity: f64,
    /// The figures.
    pub(crate) says: String,
}

impl Verdict {
    /// Broken unless `holds`.
    fn unless(holds: bool, severity: f64, figures: impl FnOnce() -> String) -> Verdict {
        if holds { Verdict::Holds } else { Verdict::Broken(Violation { severity, says: figures() }) }
    }
}

/// A relation that holds on any disk, or on those that it names by keys of their files.
pub(crate) struct Relation {
    pub(crate) name: &'static str,
    /// The bound, printed with a failure.
    pub(crate) bound: &'static str,
    /// Draws a case for a drive; none where the relation does not hold of such a drive.
    pub(crate) draw: fn(&mut Draw<'_>) -> Option<Case>,
    /// Judges a case.
    ///
    /// *Errors:* a run of it is refused.
    pub(crate) judge: fn(&mut Bench, &Case) -> Result<Verdict, String>,
}

/// All relations.
pub(crate) fn all() -> Vec<Relation> {
    let groups: [fn() -> Vec<Relation>; 7] = [
        streams::relations,
        caches::relations,
        waiting::relations,
        sharing::relations,
        flushes::relations,
        accounts::relations,
        buffered::relations,
    ];
    groups.into_iter().flat_map(|group| group()).collect()
}

/// Differences below this share are not judged: runs are short, and begin at different angles.
const MARGIN: f64 = 0.05;

/// The least share of the other's rate that one run must have: what the scatter of both explains is not judged, up to as much again.
fn least_share(one: &Figures, other: &Figures) -> f64 {
    1.0 - MARGIN - f64::hypot(one.scatter, other.scatter).min(MARGIN)
}

/// A rate against the least that it must have.
fn at_least(what: &str, rate: f64, least: f64, unit: &str, than: &str) -> Verdict {
    Verdict::unless(rate >= least, least / rate.max(1e-9), || {
        format!("{what} {rate:.2} {unit}, at least {least:.2} expected: {than}")
    })
}
