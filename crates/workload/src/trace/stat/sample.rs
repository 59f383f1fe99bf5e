//! An unbiased sample of a trace's requests, for a picture of them all.

use headstack_model::Instant;
use rand::Rng;
use rand_pcg::Pcg64Mcg;

use crate::shape::generator;
use crate::trace::{Kind, Record};

/// A request as a point.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "the names say it")]
pub struct Point {
    pub time: Instant,
    pub device: u32,
    pub kind: Kind,
    pub offset: u64,
}

/// A fixed number of requests of a trace, each with equal probability.
///
/// *Source:* reservoir sampling (Vitter 1985, algorithm R).
#[derive(Debug)]
pub struct Sample {
    points: Vec<Point>,
    most: usize,
    met: u64,
    random: Pcg64Mcg,
}

impl Sample {
    /// A sample of at most `most` requests.
    pub fn new(most: usize, seed: u64) -> Sample {
        Sample { points: Vec::new(), most, met: 0, random: generator(seed) }
    }

    /// Adds a record with the probability that keeps the sample uniform.
    pub fn observe(&mut self, record: &Record) {
        let Record { time, device, kind, offset, .. } = *record;
        let point = Point { time, device, kind, offset };
        self.met += 1;
        if self.points.len() < self.most {
            self.points.push(point);
            return;
        }
        let place = ((u128::from(self.random.next_u64()) * u128::from(self.met)) >> 64) as usize;
        if let Some(old) = self.points.get_mut(place) {
            *old = point;
        }
    }

    /// The points, by time, and the number of requests that they represent.
    pub fn finish(mut self) -> (Vec<Point>, u64) {
        self.points.sort_by_key(|point| point.time);
        (self.points, self.met)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sample_keeps_early_and_late_requests_equally() {
        let mut sample = Sample::new(1000, 7);
        for number in 0..100_000 {
            sample.observe(&Record::new(Instant(number), 0, Kind::Read, number, 1));
        }
        let (points, met) = sample.finish();
        assert_eq!((points.len(), met), (1000, 100_000));
        let early = points.iter().filter(|point| point.time.0 < 50_000).count();
        assert!((420..580).contains(&early), "{early}");
        assert!(points.windows(2).all(|pair| pair[0].time < pair[1].time));
    }
}
