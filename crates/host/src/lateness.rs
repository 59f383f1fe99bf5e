//! How much later than the model says requests are answered: a measure of whether a machine can be trusted.

use hdrhistogram::Histogram;
use std::time::Duration;

/// Lateness of every request: real time from the model's completion until the answer was passed to the system.
#[derive(Clone, Debug)]
pub struct Lateness {
    nanos: Histogram<u64>,
}

impl Default for Lateness {
    fn default() -> Lateness {
        Lateness::new()
    }
}

impl Lateness {
    /// Longest lateness in nanoseconds that is recorded; longer ones count as this one.
    const MOST: u64 = 60_000_000_000;

    /// None yet.
    pub fn new() -> Lateness {
        let nanos = Histogram::new_with_bounds(1, Lateness::MOST, 2).expect("the bounds are in order");
        Lateness { nanos }
    }

    /// Records a request.
    pub fn record(&mut self, late: Duration) {
        self.nanos.saturating_record(u64::try_from(late.as_nanos()).unwrap_or(u64::MAX));
    }

    /// Number of requests.
    pub fn count(&self) -> u64 {
        self.nanos.len()
    }

    /// The lateness that this share of the requests (0 to 1) did not exceed; zero if there are none.
    pub fn quantile(&self, share: f64) -> Duration {
        Duration::from_nanos(self.nanos.value_at_quantile(share))
    }

    /// The mean.
    pub fn mean(&self) -> Duration {
        Duration::from_nanos(self.nanos.mean() as u64)
    }

    /// The longest.
    pub fn max(&self) -> Duration {
        Duration::from_nanos(self.nanos.max())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_match_the_median_and_the_tail() {
        let mut lateness = Lateness::new();
        assert_eq!((lateness.count(), lateness.quantile(0.99)), (0, Duration::ZERO));
        (1..=100).for_each(|micros| lateness.record(Duration::from_micros(micros)));
        let within = |value: Duration, micros: f64| (value.as_secs_f64() * 1e6 / micros - 1.0).abs() < 0.01;
        assert!(within(lateness.quantile(0.5), 50.0) && within(lateness.quantile(0.99), 99.0));
        assert!(within(lateness.max(), 100.0));
    }
}
