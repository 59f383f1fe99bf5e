//! The search: the numbers of all parts, then the choices one after the other, until neither helps.

use crate::changes;
use crate::choices;
use crate::distance::{Classes, FitError};
use crate::numbers::{self, FitNumber, FitPart};
use crate::observed::ObservedRequest;
use crate::replayed::replay;
use headstack_model::DriveSpec;
use levenberg_marquardt::{LeastSquaresProblem, LevenbergMarquardt};
use nalgebra::{DMatrix, DVector, Dyn, Owned};
use rayon::iter::{IntoParallelIterator, IntoParallelRefIterator, ParallelIterator};
use std::sync::atomic::{AtomicUsize, Ordering};

/// A choice is taken only if it makes the error smaller by this share: what makes no difference stays as it was.
const CLEAR: f64 = 0.003;

/// The share of the error that a change must be worth to stay, once all are made.
const IDLE: f64 = 0.002;

/// The residual of a number that moved over its whole range, in ms: what the trace does not tell stays as it was.
const INERTIA: f64 = 0.03;

/// How far a number is moved to see what it does, as a share of its range: responses are not smooth in less.
const STEP: f64 = 0.03;

/// Alternatives taken at most.
const STEPS: u32 = 20;

/// The alternatives whose numbers are moved before one is taken, and those of one choice among them.
const FOLLOWED: usize = 16;
const OF_ONE_CHOICE: usize = 2;

/// Evaluations for a parameter in an adjustment, and in one that only sees where an alternative leads.
const PATIENCE: usize = 15;
const SHORT_PATIENCE: usize = 6;

/// Times the best error from which an alternative is hopeless whatever the numbers are.
const HOPELESS: f64 = 2.0;

const ALL_PARTS: [FitPart; 3] = [FitPart::Overhead, FitPart::Transfer, FitPart::Seek];

/// How far a fit is.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct FitProgress {
    /// Replays so far.
    pub replays: usize,
    /// The error of the best drive so far, in ms.
    pub error_ms: f64,
}

/// Is called with how far a fit is, and returns whether it continues.
pub type Continues<'a> = dyn Fn(FitProgress) -> bool + Sync + 'a;

/// The requests of a trace that a search sees.
struct SeenTrace<'a> {
    requests: &'a [ObservedRequest],
    classes: Classes,
    /// Their share of all that is seen.
    share: f64,
}

pub(crate) struct FitSearch<'a> {
    traces: Vec<SeenTrace<'a>>,
    replays: AtomicUsize,
    continues: &'a Continues<'a>,
}

impl<'a> FitSearch<'a> {
    /// A search over traces, each with the place from which its requests count.
    pub(crate) fn new(
        traces: &[(&'a [ObservedRequest], usize)],
        continues: &'a Continues<'a>,
    ) -> FitSearch<'a> {
        let all: usize = traces.iter().map(|(requests, from)| requests.len() - from).sum();
        let seen = |(requests, from): &(&'a [ObservedRequest], usize)| SeenTrace {
            requests,
            classes: Classes::new(requests, *from),
            share: (requests.len() - from) as f64 / all as f64,
        };
        FitSearch { traces: traces.iter().map(seen).collect(), replays: AtomicUsize::new(0), continues }
    }

    pub(crate) fn replays(&self) -> usize {
        self.replays.load(Ordering::Relaxed)
    }

    /// The error of a drive, the mean over the traces; `None` if it cannot be built.
    pub(crate) fn error(&self, spec: &DriveSpec) -> Option<FitError> {
        spec.check().ok()?;
        self.replays.fetch_add(1, Ordering::Relaxed);
        let each = self.traces.iter().map(|trace| {
            let simulated = replay(spec, trace.requests)?;
            Some((trace.share, trace.classes.error(trace.requests, &simulated)))
        });
        Some(FitError::mean(&each.collect::<Option<Vec<_>>>()?))
    }

    pub(crate) fn total(&self, spec: &DriveSpec) -> f64 {
        self.error(spec).map_or(f64::MAX, |error| error.total_ms)
    }

    fn has_time(&self, least: f64) -> bool {
        (self.continues)(FitProgress { replays: self.replays(), error_ms: least })
    }

    /// The best drive that the search finds from here.
    pub(crate) fn run(&self, start: DriveSpec) -> DriveSpec {
        let (mut least, mut best) = (self.total(&start), start);
        (best, least) = self.adjust_all(best, least);
        for _ in 0..STEPS {
            let Some(better) = self.choose(&best, least) else { break };
            (best, least) = better;
            (best, least) = self.adjust_all(best, least);
        }
        self.settle(best)
    }

    /// The numbers, part by part and then together.
    fn adjust_all(&self, mut best: DriveSpec, mut least: f64) -> (DriveSpec, f64) {
        for part in ALL_PARTS {
            (best, least) = self.adjust(&[part], best, least, SHORT_PATIENCE);
        }
        self.adjust(&ALL_PARTS, best, least, PATIENCE)
    }

    /// The numbers of a drive whose choices are made.
    pub(crate) fn settle(&self, start: DriveSpec) -> DriveSpec {
        let (mut least, mut best) = (self.total(&start), start);
        loop {
            let before = least;
            (best, least) = self.adjust(&ALL_PARTS, best, least, 4 * PATIENCE);
            if !self.has_time(least) || least >= before * (1.0 - CLEAR) {
                return best;
            }
        }
    }

    /// The fitted drive with the values of the start wherever they make no difference: what the trace does not tell stays as it was.
    pub(crate) fn without_idle_changes(&self, start: &DriveSpec, spec: DriveSpec) -> DriveSpec {
        let mut best = spec;
        let least = self.total(&best);
        if self.total(start) <= least {
            return start.clone();
        }
        for change in changes::differences(start, &best) {
            let without =
                changes::without(&best, &change).filter(|spec| self.total(spec) < least * (1.0 + IDLE));
            best = without.unwrap_or(best);
        }
        best
    }

    /// The drive with the alternative that is best once the numbers have followed it; `None` if none is clearly better.
    fn choose(&self, best: &DriveSpec, least: f64) -> Option<(DriveSpec, f64)> {
        if !self.has_time(least) {
            return None;
        }
        let each = choices::ALL.par_iter().flat_map_iter(|choice| {
            let totals = (choice.alternatives)(best).into_iter().map(|spec| (self.total(&spec), spec));
            // What makes no difference to any request makes none with other numbers either.
            let mut tried: Vec<(f64, DriveSpec)> =
                totals.filter(|(total, _)| *total != least && *total < least * HOPELESS).collect();
            tried.sort_by(|one, other| one.0.total_cmp(&other.0));
            tried.truncate(OF_ONE_CHOICE);
            tried
        });
        let mut tried: Vec<(f64, DriveSpec)> = each.collect();
        tried.sort_by(|one, other| one.0.total_cmp(&other.0));
        tried.truncate(FOLLOWED);
        let followed = tried.into_par_iter().map(|(total, spec)| {
            self.adjust(&[FitPart::Overhead, FitPart::Transfer], spec, total, SHORT_PATIENCE)
        });
        let found = followed.collect::<Vec<_>>().into_iter().min_by(|one, other| one.1.total_cmp(&other.1));
        found.filter(|(_, total)| *total < least * (1.0 - CLEAR))
    }

    /// Moves the numbers of some parts to where the error is least.
    fn adjust(&self, parts: &[FitPart], best: DriveSpec, least: f64, patience: usize) -> (DriveSpec, f64) {
        if !self.has_time(least) {
            return (best, least);
        }
        let numbers: Vec<FitNumber> =
            numbers::all(&best).into_iter().filter(|number| parts.contains(&number.part)).collect();
        let start: Vec<f64> = numbers.iter().map(FitNumber::share).collect();
        let shares = DVector::from_vec(start.clone());
        let problem = Adjusted { search: self, numbers: &numbers, spec: &best, start, shares };
        let solver = LevenbergMarquardt::new().with_patience(patience).with_stepbound(1.0).with_ftol(1e-4);
        let (problem, _) = solver.minimize(problem);
        let spec = problem.spec_at(problem.shares.as_slice());
        let total = self.total(&spec);
        if total < least { (spec, total) } else { (best, least) }
    }
}

/// The differences of the distributions as a function of some numbers, each as a share of its range.
struct Adjusted<'a> {
    search: &'a FitSearch<'a>,
    numbers: &'a [FitNumber],
    spec: &'a DriveSpec,
    start: Vec<f64>,
    shares: DVector<f64>,
}

impl Adjusted<'_> {
    fn spec_at(&self, shares: &[f64]) -> DriveSpec {
        let mut spec = self.spec.clone();
        self.numbers.iter().zip(shares).for_each(|(number, share)| number.set_share(&mut spec, *share));
        spec
    }

    fn residuals_at(&self, shares: &[f64]) -> Option<Vec<f64>> {
        let spec = self.spec_at(shares);
        spec.check().ok()?;
        self.search.replays.fetch_add(1, Ordering::Relaxed);
        let mut residuals = Vec::new();
        for SeenTrace { requests, classes, share } in &self.search.traces {
            classes.add_residuals(requests, &replay(&spec, requests)?, *share, &mut residuals);
        }
        residuals.extend(shares.iter().zip(&self.start).map(|(share, start)| INERTIA * (share - start)));
        Some(residuals)
    }

    /// How the residuals change with a number; not at all if it cannot move.
    fn column(&self, place: usize, residuals: &[f64]) -> DVector<f64> {
        let share = self.shares[place];
        let steps = if share > 0.5 { [-STEP, STEP] } else { [STEP, -STEP] };
        let slopes = steps.into_iter().find_map(|step| {
            let mut shares = self.shares.as_slice().to_vec();
            shares[place] = share + step;
            let moved = self.residuals_at(&shares)?;
            Some(moved.iter().zip(residuals).map(|(moved, at)| (moved - at) / step).collect::<Vec<f64>>())
        });
        DVector::from_vec(slopes.unwrap_or_else(|| vec![0.0; residuals.len()]))
    }
}

impl LeastSquaresProblem<f64, Dyn, Dyn> for Adjusted<'_> {
    type ParameterStorage = Owned<f64, Dyn>;
    type ResidualStorage = Owned<f64, Dyn>;
    type JacobianStorage = Owned<f64, Dyn, Dyn>;

    fn set_params(&mut self, shares: &DVector<f64>) {
        self.shares = shares.map(|share| share.clamp(0.0, 1.0));
    }

    fn params(&self) -> DVector<f64> {
        self.shares.clone()
    }

    fn residuals(&self) -> Option<DVector<f64>> {
        self.residuals_at(self.shares.as_slice()).map(DVector::from_vec)
    }

    fn jacobian(&self) -> Option<DMatrix<f64>> {
        let residuals = self.residuals_at(self.shares.as_slice())?;
        let columns = (0..self.numbers.len()).into_par_iter().map(|place| self.column(place, &residuals));
        Some(DMatrix::from_columns(&columns.collect::<Vec<_>>()))
    }
}
