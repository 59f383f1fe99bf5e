//! The rules of replacement among bounded counters, in one list.

use super::analyzer::{ExactCounts, FirstCome, ReferenceAnalyzer};
use super::space_saving::SpaceSaving;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What happens to a reference to a block without a counter when no counter is free.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum CounterReplacement {
    /// The block gets the smallest counter and continues its count (Metwally, Agrawal and El Abbadi 2005).
    #[default]
    SpaceSaving,
    /// The reference is not counted: the blocks referenced first have the counters until the period ends.
    FirstCome,
    /// It does not happen: every block has a counter, in unbounded memory.
    Exact,
}

impl CounterReplacement {
    /// All rules.
    pub fn all() -> [CounterReplacement; 3] {
        [CounterReplacement::SpaceSaving, CounterReplacement::FirstCome, CounterReplacement::Exact]
    }

    /// An analyzer with this rule and number of counters.
    pub fn analyzer(self, counters: usize) -> Box<dyn ReferenceAnalyzer> {
        match self {
            CounterReplacement::SpaceSaving => Box::new(SpaceSaving::new(counters)),
            CounterReplacement::FirstCome => Box::new(FirstCome::new(counters)),
            CounterReplacement::Exact => Box::new(ExactCounts::default()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::analyzer::CarriedShare;
    use super::*;

    fn observed(
        replacement: CounterReplacement,
        counters: usize,
        blocks: &[u64],
    ) -> Box<dyn ReferenceAnalyzer> {
        let mut analyzer = replacement.analyzer(counters);
        blocks.iter().for_each(|block| analyzer.observe(*block));
        analyzer
    }

    #[test]
    fn hot_list_falls_by_count_and_ties_rise_by_number() {
        for replacement in CounterReplacement::all() {
            let analyzer = observed(replacement, 8, &[9, 3, 5, 3, 9, 7, 5, 5]);
            let list: Vec<(u64, u64)> =
                analyzer.hot_list(3).iter().map(|hot| (hot.block, hot.count)).collect();
            assert_eq!(list, [(5, 3), (3, 2), (9, 2)], "{replacement:?}");
        }
    }

    #[test]
    fn first_come_counts_only_blocks_that_have_a_counter() {
        let analyzer = observed(CounterReplacement::FirstCome, 2, &[1, 2, 3, 3, 3, 2]);
        let list: Vec<(u64, u64)> = analyzer.hot_list(9).iter().map(|hot| (hot.block, hot.count)).collect();
        assert_eq!(list, [(2, 2), (1, 1)]);
    }

    #[test]
    fn ageing_keeps_a_share_of_each_count_and_frees_empty_counters() {
        for replacement in CounterReplacement::all() {
            let mut analyzer = observed(replacement, 8, &[1, 1, 1, 1, 1, 2, 2, 3]);
            analyzer.age(CarriedShare::from_ratio(0.5));
            let list: Vec<(u64, u64)> =
                analyzer.hot_list(9).iter().map(|hot| (hot.block, hot.count)).collect();
            assert_eq!(list, [(1, 2), (2, 1)], "{replacement:?}");
            analyzer.age(CarriedShare::from_ratio(0.0));
            assert_eq!(analyzer.counters(), 0, "{replacement:?}");
        }
    }

    #[test]
    fn restored_counts_continue() {
        for replacement in CounterReplacement::all() {
            let before = observed(replacement, 8, &[4, 4, 6]);
            let mut after = replacement.analyzer(8);
            after.restore(&before.hot_list(8));
            after.observe(6);
            after.observe(6);
            let list: Vec<(u64, u64)> = after.hot_list(9).iter().map(|hot| (hot.block, hot.count)).collect();
            assert_eq!(list, [(6, 3), (4, 2)], "{replacement:?}");
        }
    }
}
