//! Decides when a paired comparison needs no more seeds (a group-sequential test).

use crate::numbers::confidence_interval;

/// Seeds before the first look: the interval of two pairs is too wide to decide.
const FIRST_LOOK: u64 = 3;

/// Confidence of all looks at a difference together.
const CONFIDENCE: f64 = 0.95;

/// Interim looks at a difference from a baseline, as the number of seeds grows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PairedLooks {
    seeds: u64,
}

impl PairedLooks {
    /// The looks of a comparison over at most `seeds` seeds.
    pub fn new(seeds: u64) -> PairedLooks {
        PairedLooks { seeds }
    }

    /// Numbers of seeds after which the difference is tested: 3, 6, 12 and so on, and finally all.
    pub fn looks(self) -> Vec<u64> {
        let each = std::iter::successors(Some(FIRST_LOOK), |count| Some(2 * count));
        each.take_while(|count| *count < self.seeds).chain([self.seeds]).collect()
    }

    /// Whether the values differ from those of the baseline with the same seeds by more than chance explains. The looks share the
    /// probability of an error (Bonferroni), because each of them may stop by chance.
    pub fn is_clear(self, values: &[f64], baseline: &[f64]) -> bool {
        let confidence = 1.0 - (1.0 - CONFIDENCE) / self.looks().len() as f64;
        let differences: Vec<f64> = values.iter().zip(baseline).map(|(own, other)| own - other).collect();
        confidence_interval(&differences, confidence)
            .is_some_and(|(mean, half_width)| mean.abs() > half_width)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn looks_double_until_all_seeds() {
        assert_eq!(PairedLooks::new(20).looks(), [3, 6, 12, 20]);
        assert_eq!(PairedLooks::new(2).looks(), [2]);
    }

    #[test]
    fn difference_in_pairs_is_clear_where_its_spread_is_smaller() {
        let looks = PairedLooks::new(20);
        let base = [10.0, 20.0, 40.0];
        assert!(looks.is_clear(&[11.0, 21.01, 41.02], &base));
        assert!(!looks.is_clear(&[10.2, 19.9, 40.1], &base));
        assert!(!looks.is_clear(&base, &base), "equal runs differ by nothing");
    }
}
