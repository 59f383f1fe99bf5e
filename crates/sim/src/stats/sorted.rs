//! An exact distribution of times that keeps each of them, for runs short enough.

use headstack_model::Nanos;

/// Times in ascending order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SortedTimes(Vec<Nanos>);

impl From<Vec<Nanos>> for SortedTimes {
    fn from(mut times: Vec<Nanos>) -> SortedTimes {
        times.sort_unstable();
        SortedTimes(times)
    }
}

impl SortedTimes {
    /// The number of times.
    pub fn count(&self) -> usize {
        self.0.len()
    }

    /// The mean in milliseconds, 0 without times.
    pub fn mean_ms(&self) -> f64 {
        let sum: u128 = self.0.iter().map(|time| u128::from(time.0)).sum();
        if self.0.is_empty() { 0.0 } else { sum as f64 / self.0.len() as f64 / 1e6 }
    }

    /// The time that a share `quantile` of all do not exceed, by the nearest rank; zero if there are none.
    pub fn quantile(&self, quantile: f64) -> Nanos {
        let rank = (quantile * self.0.len() as f64).ceil() as usize;
        self.0.get(rank.clamp(1, self.0.len().max(1)) - 1).copied().unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_times_of_the_sample() {
        let times = SortedTimes::from([40, 10, 30, 20].map(Nanos::from_secs).to_vec());
        let quantile = |share| times.quantile(share).as_secs();
        assert_eq!([0.0, 0.25, 0.26, 0.5, 0.99, 1.0].map(quantile), [10.0, 10.0, 20.0, 20.0, 40.0, 40.0]);
        assert_eq!((times.count(), times.mean_ms()), (4, 25_000.0));
        let nothing = SortedTimes::default();
        assert_eq!((nothing.quantile(0.5), nothing.mean_ms()), (Nanos::ZERO, 0.0));
    }
}
