//! How far simulated response times are from measured ones: between the distributions of requests that are alike.

use crate::observed::{ObservedRequest, end_of};
use headstack_model::{Nanos, Op};
use headstack_sim::stats::demerit_ms as distance_ms;

/// Requests at the start that no figure counts: the trace does not tell what the disk did before them.
const WARM_UP: usize = 50;

/// Requests that a class needs; those of smaller ones are a class together.
const LEAST_IN_CLASS: usize = 40;

/// Weight of the mean absolute error against the distances of distributions: it tells which requests were hits.
const OF_SINGLE: f64 = 0.1;

/// Blocks of the sorted times of all requests, and of those of a class.
const BLOCKS_OF_ALL: usize = 100;
const BLOCKS: usize = 20;

/// Requests divided into classes: reads and writes by their distance from the request before.
#[derive(Clone, Debug)]
pub(crate) struct Classes {
    /// The requests that count, by their places.
    counted: Vec<usize>,
    /// The requests of each class, by their places.
    members: Vec<Vec<usize>>,
}

/// How far simulated times are from measured ones, in ms.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct FitError {
    /// The demerit: the rms distance between the two distributions.
    pub demerit_ms: f64,
    /// The mean absolute error of single requests.
    pub mae_ms: f64,
    /// The mean measured response.
    pub mean_ms: f64,
    /// What a fit makes small: the rms of the demerit and of those of the classes, and a share of the mean absolute error.
    pub total_ms: f64,
}

impl FitError {
    /// The mean of errors, each with its share: of squares where the error is one of rms distances.
    pub(crate) fn mean(each: &[(f64, FitError)]) -> FitError {
        let mean =
            |of: fn(&FitError) -> f64| each.iter().map(|(share, error)| share * of(error)).sum::<f64>();
        FitError {
            demerit_ms: mean(|error| error.demerit_ms.powi(2)).sqrt(),
            mae_ms: mean(|error| error.mae_ms),
            mean_ms: mean(|error| error.mean_ms),
            total_ms: mean(|error| error.total_ms.powi(2)).sqrt(),
        }
    }
}

impl Classes {
    /// The classes of these reads and writes, of which those before a place do not count.
    pub(crate) fn new(requests: &[ObservedRequest], counted_from: usize) -> Classes {
        let first = counted_from.max(WARM_UP).min(requests.len());
        let mut distances: Vec<u64> = (1..requests.len()).map(|place| distance(requests, place)).collect();
        distances.sort_unstable();
        let quartile = |share: usize| distances.get(distances.len() * share / 4).copied().unwrap_or(0);
        let bounds = [0, 64, 1024, quartile(1).max(1024), quartile(2).max(1024), quartile(3).max(1024)];
        let moves_data = |place: &usize| requests[*place].request.op != Op::Flush;
        let counted: Vec<usize> = (first..requests.len()).filter(moves_data).collect();
        let mut members = vec![Vec::new(); 4 * (bounds.len() + 1)];
        for place in counted.iter().copied() {
            let far = bounds.iter().filter(|bound| place == 0 || distance(requests, place) > **bound).count();
            let is_write = requests[place].request.op == Op::Write;
            let after_write = place > 0 && requests[place - 1].request.op == Op::Write;
            members[4 * far + 2 * usize::from(is_write) + usize::from(after_write)].push(place);
        }
        let small: Vec<usize> =
            members.iter().filter(|class| class.len() < LEAST_IN_CLASS).flatten().copied().collect();
        members.retain(|class| class.len() >= LEAST_IN_CLASS);
        if !small.is_empty() {
            members.push(small);
        }
        Classes { counted, members }
    }

    /// The differences of the distributions, in ms: blocks of sorted times of all requests and of each class. Half the sum of their squares is
    /// near the square of the total error. Of several traces, each counts by its share of the requests.
    pub(crate) fn add_residuals(
        &self,
        requests: &[ObservedRequest],
        simulated: &[Nanos],
        share: f64,
        into: &mut Vec<f64>,
    ) {
        let all = &self.counted;
        let count = all.len() as f64;
        let mut add = |places: &[usize], blocks: usize, weight: f64| {
            let sorted = |time: &dyn Fn(usize) -> Nanos| {
                let mut times: Vec<f64> = places.iter().map(|place| time(*place).as_ms()).collect();
                times.sort_unstable_by(f64::total_cmp);
                times
            };
            let measured = sorted(&|place| requests[place].response);
            let found = sorted(&|place| simulated[place]);
            let weight = (weight / blocks as f64).sqrt();
            for block in 0..blocks {
                let range = block * places.len() / blocks..(block + 1) * places.len() / blocks;
                let mean = |times: &[f64]| times.iter().sum::<f64>() / times.len().max(1) as f64;
                into.push(weight * (mean(&found[range.clone()]) - mean(&measured[range])));
            }
        };
        add(all, BLOCKS_OF_ALL.min(all.len()), 0.5 * share);
        for class in &self.members {
            add(class, BLOCKS.min(class.len()), 0.5 * share * class.len() as f64 / count);
        }
    }

    /// How far the simulated times are from the measured ones.
    pub(crate) fn error(&self, requests: &[ObservedRequest], simulated: &[Nanos]) -> FitError {
        let of = |places: &mut dyn Iterator<Item = usize>| -> (Vec<Nanos>, Vec<Nanos>) {
            places.map(|place| (requests[place].response, simulated[place])).unzip()
        };
        let (measured, found) = of(&mut self.counted.iter().copied());
        let demerit_ms = distance_ms(&measured, &found).unwrap_or(0.0);
        let count = measured.len() as f64;
        let single = |(one, other): (&Nanos, &Nanos)| one.0.abs_diff(other.0) as f64 / 1e6;
        let mae_ms = measured.iter().zip(&found).map(single).sum::<f64>() / count;
        let mean_ms = measured.iter().map(|time| time.as_ms()).sum::<f64>() / count;
        let square = |class: &Vec<usize>| {
            let (measured, found) = of(&mut class.iter().copied());
            class.len() as f64 * distance_ms(&measured, &found).unwrap_or(0.0).powi(2)
        };
        let squares = self.members.iter().map(square).sum::<f64>() / count;
        let total_ms = ((demerit_ms.powi(2) + squares) / 2.0).sqrt() + OF_SINGLE * mae_ms;
        FitError { demerit_ms, mae_ms, mean_ms, total_ms }
    }
}

/// Blocks from the end of the request before to this one.
fn distance(requests: &[ObservedRequest], place: usize) -> u64 {
    end_of(&requests[place - 1].request).abs_diff(requests[place].request.lbn.0)
}
