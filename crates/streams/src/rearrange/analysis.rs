//! What rearrangement could do with a sequence of references, without a disk: skew, drift, and what a region would catch.

use super::analyzer::{CarriedShare, ExactCounts, HotBlock, ReferenceAnalyzer};
use super::list_error::{ListError, caught_share};
use super::replacement::CounterReplacement;
use headstack_model::{Instant, Nanos};

/// Shares of a period's references that a region catches.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CaughtShares {
    /// Blocks of the region.
    pub blocks: usize,
    /// What the period's own hot list catches: the most that a region of this size could.
    pub own: f64,
    /// What the hot list of the last period with references catches; `None` in the first.
    pub last: Option<f64>,
    /// What the last hot list of the bounded counters catches; `None` in the first period.
    pub last_counted: Option<f64>,
}

/// A period of references.
#[derive(Clone, Debug, PartialEq)]
pub struct PeriodAnalysis {
    /// Its number since the first reference, from 0 on.
    pub number: u64,
    /// References in it.
    pub references: u64,
    /// Blocks referenced in it.
    pub blocks: u64,
    /// The hot list of a perfect monitor: a(i).
    pub hot: Vec<HotBlock>,
    /// What regions of each size catch.
    pub caught: Vec<CaughtShares>,
    /// What the last period's hot list lacks of this one's; `None` in the first.
    pub drift: Option<ListError>,
    /// What the hot list of the bounded counters lacks of the perfect monitor's.
    pub counter_error: ListError,
}

/// Analyzes references period by period. Memory: a counter for each block of a period.
#[derive(Debug)]
pub struct ReferenceAnalysis {
    /// Sizes of regions, rising. The last is that of the hot lists.
    sizes: Vec<usize>,
    period: Nanos,
    start: Option<Instant>,
    number: u64,
    exact: ExactCounts,
    bounded: Box<dyn ReferenceAnalyzer>,
    /// The hot lists of the last period with references: exact, and of bounded counters.
    last: Option<[Vec<HotBlock>; 2]>,
}

impl ReferenceAnalysis {
    /// For regions of these numbers of blocks, periods, and bounded counters. Hot lists are as long as the largest region.
    ///
    /// Panics without a size, or for a period of zero.
    pub fn new(
        mut sizes: Vec<usize>,
        period: Nanos,
        replacement: CounterReplacement,
        counters: usize,
    ) -> ReferenceAnalysis {
        assert!(period > Nanos::ZERO && !sizes.is_empty(), "a period has a length, and a region a size");
        sizes.sort_unstable();
        sizes.dedup();
        ReferenceAnalysis {
            sizes,
            period,
            start: None,
            number: 0,
            exact: ExactCounts::default(),
            bounded: replacement.analyzer(counters),
            last: None,
        }
    }

    /// Counts a reference. Returns the period that it ends, if that period had references. A time before the last reference's counts in the
    /// current period.
    pub fn observe(&mut self, time: Instant, block: u64) -> Option<PeriodAnalysis> {
        let start = *self.start.get_or_insert(time);
        let number = time.since(start).0 / self.period.0;
        let ended = if number > self.number { self.end_period() } else { None };
        self.number = self.number.max(number);
        self.exact.observe(block);
        self.bounded.observe(block);
        ended
    }

    /// Ends the last period.
    pub fn finish(mut self) -> Option<PeriodAnalysis> {
        self.end_period()
    }

    fn end_period(&mut self) -> Option<PeriodAnalysis> {
        let references = self.exact.references();
        if references == 0 {
            return None;
        }
        let most = self.sizes[self.sizes.len() - 1];
        let (hot, counted) = (self.exact.hot_list(most), self.bounded.hot_list(most));
        let share =
            |list: &Vec<HotBlock>, blocks: usize| caught_share(&list[..blocks.min(list.len())], &self.exact);
        let caught = |&blocks: &usize| CaughtShares {
            blocks,
            own: share(&hot, blocks),
            last: self.last.as_ref().map(|[last, _]| share(last, blocks)),
            last_counted: self.last.as_ref().map(|[_, counted]| share(counted, blocks)),
        };
        let analysis = PeriodAnalysis {
            number: self.number,
            references,
            blocks: self.exact.counters() as u64,
            caught: self.sizes.iter().map(caught).collect(),
            drift: self.last.as_ref().map(|[last, _]| ListError::new(&hot, last)),
            counter_error: ListError::new(&hot, &counted),
            hot: hot.clone(),
        };
        self.last = Some([hot, counted]);
        self.exact.age(CarriedShare::from_ratio(0.0));
        self.bounded.age(CarriedShare::from_ratio(0.0));
        Some(analysis)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn analyzed(periods: &[&[u64]], counters: usize) -> Vec<PeriodAnalysis> {
        let mut analysis =
            ReferenceAnalysis::new(vec![2, 1], Nanos(100), CounterReplacement::FirstCome, counters);
        let mut ended = Vec::new();
        for (number, blocks) in (0u64..).zip(periods) {
            for block in *blocks {
                ended.extend(analysis.observe(Instant(1000 + number * 100), *block));
            }
        }
        ended.extend(analysis.finish());
        ended
    }

    #[test]
    fn drift_and_catch_are_those_of_successive_periods() {
        let periods = analyzed(&[&[1, 1, 1, 2, 2, 3], &[], &[1, 1, 4, 4, 4, 3, 2, 2, 1, 9]], 9);
        assert_eq!(periods.len(), 2, "a period without references has no analysis");
        let [first, second] = &periods[..] else { panic!("two") };
        assert_eq!((first.number, first.references, first.blocks), (0, 6, 3));
        assert_eq!((first.caught[1].own, first.caught[1].last, first.drift), (5.0 / 6.0, None, None));
        let CaughtShares { blocks, own, last, .. } = second.caught[1];
        assert_eq!((second.number, blocks, own, last), (2, 2, 0.6, Some(0.5)));
        let CaughtShares { blocks, own, last, .. } = second.caught[0];
        assert_eq!((blocks, own, last), (1, 0.3, Some(0.3)));
        assert_eq!(second.drift, Some(ListError { by_block: 0.5, by_reference: 0.5 }));
        assert_eq!(second.counter_error, ListError::default());
    }

    #[test]
    fn few_counters_err() {
        let periods = analyzed(&[&[1, 2, 3, 3, 3], &[3, 3, 1]], 2);
        assert_eq!(periods[0].counter_error, ListError { by_block: 0.5, by_reference: 0.75 });
        let CaughtShares { last, last_counted, .. } = periods[1].caught[1];
        assert_eq!((last, last_counted), (Some(1.0), Some(1.0 / 3.0)));
    }
}
