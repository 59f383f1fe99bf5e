//! Stripe units: how an array cuts its members into rows.
//!
//! A row holds one unit of each member, at the same blocks of all of them. Units are all of one length, or of given
//! lengths, as when each is a track.

/// Units of one length that follow each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UnitRun {
    /// Blocks of each.
    pub sectors: u64,
    /// How many.
    pub count: u64,
}

/// How long the stripe units are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Unit {
    /// A unit is a whole member.
    Member,
    /// Units of this many blocks; the rest of a member after the last unit is not used.
    Sectors(u64),
    /// They have these lengths, from the first block of every member on.
    Lengths(Vec<UnitRun>),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Row {
    pub(super) number: u64,
    /// Block of each member at which its unit begins.
    pub(super) start: u64,
    pub(super) sectors: u64,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Rows {
    /// The first row of each run, all others of which are as long.
    runs: Vec<Row>,
    sectors: u64,
}

impl Rows {
    /// The rows of members with at least `least` blocks.
    pub(super) fn new(unit: &Unit, least: u64) -> Rows {
        let runs = match unit {
            Unit::Member => &[UnitRun { sectors: least, count: 1 }][..],
            Unit::Sectors(sectors) => &[UnitRun { sectors: *sectors, count: least / sectors }],
            Unit::Lengths(runs) => runs,
        };
        let mut rows = Rows { runs: Vec::with_capacity(runs.len()), sectors: 0 };
        let mut number = 0;
        for run in runs.iter().filter(|run| run.sectors > 0 && run.count > 0) {
            let count = run.count.min((least - rows.sectors) / run.sectors);
            rows.runs.push(Row { number, start: rows.sectors, sectors: run.sectors });
            (number, rows.sectors) = (number + count, rows.sectors + count * run.sectors);
            if count < run.count {
                break;
            }
        }
        rows
    }

    pub(super) fn sectors(&self) -> u64 {
        self.sectors
    }

    /// The row of a block of the members.
    pub(super) fn row_at(&self, block: u64) -> Row {
        let after = match self.runs.len() {
            1 => 1,
            _ => self.runs.partition_point(|run| run.start <= block),
        };
        let first = self.runs[after - 1];
        let further = (block - first.start) / first.sectors;
        Row { number: first.number + further, start: first.start + further * first.sectors, ..first }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn every_block_lies_in_the_row_of_its_run(
            lengths in prop::collection::vec((1u64..9, 0u64..4), 1..6),
            least in 1u64..100,
        ) {
            let runs: Vec<UnitRun> =
                lengths.iter().map(|(sectors, count)| UnitRun { sectors: *sectors, count: *count }).collect();
            let each: Vec<u64> =
                runs.iter().flat_map(|run| vec![run.sectors; run.count as usize]).collect();
            let rows = Rows::new(&Unit::Lengths(runs), least);
            let (mut start, mut number) = (0, 0);
            for sectors in each {
                if start + sectors > least {
                    break;
                }
                for block in start..start + sectors {
                    prop_assert_eq!(rows.row_at(block), Row { number, start, sectors });
                }
                (start, number) = (start + sectors, number + 1);
            }
            prop_assert_eq!(rows.sectors(), start);
        }
    }
}
