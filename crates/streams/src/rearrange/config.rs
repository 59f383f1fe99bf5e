//! The keys of the rearranger, with their defaults and ranges.

use super::analyzer::CarriedShare;
use super::error::outside;
use super::placement::HotPlacement;
use super::replacement::CounterReplacement;
use headstack_model::Nanos;
use headstack_model::spec::{Fault, KeyRules};
use rand::{Rng, RngExt};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::sync::LazyLock;

/// How frequently used blocks of a disk are copied together.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct RearrangeSpec {
    /// Copies for which the region has room. The region is as many whole cylinders as these need.
    #[schemars(range(min = 1, max = MOST))]
    pub blocks: u32,
    /// Bytes of a block, a multiple of the disk's sector.
    #[schemars(range(min = 512, max = 16 << 20))]
    pub block_bytes: u64,
    /// Where the region is.
    pub region: RegionPlace,
    /// First sector of the region, in place of `region`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub first_lbn: Option<u64>,
    /// The region as a list of runs, each of a first sector and a number of sectors, such as tracks of a track map; in place of
    /// `region`, `first_lbn` and `blocks`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 1 << 20))]
    pub runs: Vec<[u64; 2]>,
    /// Time from one rearrangement to the next.
    #[schemars(range(min = 1.0, max = 1e8))]
    pub period_s: f64,
    /// Counters of blocks. Default: four for each block of the region.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = MOST))]
    pub counters: Option<u32>,
    /// What happens to a reference to a block without a counter when no counter is free.
    pub replacement: CounterReplacement,
    /// Share of each count that is carried to the next period.
    #[schemars(range(min = 0.0, max = 0.99))]
    pub carried_ratio: f64,
    /// References in a period that make a block worth a copy, with `selection = "last-period"`.
    #[schemars(range(min = 1, max = 1_000_000_000))]
    pub least_references: u64,
    /// Blocks of a request up to which its blocks are counted. A longer read is served from the blocks' homes, unless a copy was written.
    #[schemars(range(min = 1, max = 1 << 20))]
    pub longest_blocks: u32,
    /// Which hot blocks are copied.
    pub selection: HotSelection,
    /// References that pay for a copy, with `selection = "forecast"`.
    #[schemars(range(min = 1, max = 1_000_000_000))]
    pub copy_references: u64,
    /// How hot blocks are placed in the region.
    pub placement: HotPlacement,
    /// When blocks are copied.
    pub when: CopyTime,
    /// Time without a request after which the disk counts as idle, with `when = "idle"`.
    #[schemars(range(min = 0.001, max = 1e7))]
    pub idle_ms: f64,
    /// Share of the time that copies take, with `when = "share"`.
    #[schemars(range(min = 0.001, max = 1.0))]
    pub share: f64,
    /// Copies in flight, at most.
    #[schemars(range(min = 1, max = 64))]
    pub parallel_copies: u32,
    /// Which copy of a block is read that was not written since it was copied.
    pub read_from: ReadSource,
}

/// Where the region is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum RegionPlace {
    /// On the middle cylinders.
    #[default]
    Middle,
    /// At the first sectors, which are the fastest on most disks.
    OuterEdge,
    /// At the last sectors.
    InnerEdge,
}

/// Which hot blocks are copied.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum HotSelection {
    /// The most referenced ones of the last period.
    #[default]
    LastPeriod,
    /// Blocks whose references, forecast from the last periods, are at least `copy_references`. Copies stay in their slots.
    Forecast,
}

/// When blocks are copied.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum CopyTime {
    /// While the disk is idle.
    #[default]
    Idle,
    /// At any time, but only for a share of it.
    Share,
    /// As soon as the period has ended, one after the other.
    AtOnce,
}

/// Which of two equal copies of a block is read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ReadSource {
    /// That in the region.
    #[default]
    Copy,
    /// The one nearer to the arm.
    Nearest,
}

impl Default for RearrangeSpec {
    fn default() -> RearrangeSpec {
        RearrangeSpec {
            blocks: 1000,
            block_bytes: 8 << 10,
            region: RegionPlace::default(),
            first_lbn: None,
            runs: Vec::new(),
            period_s: 86_400.0,
            counters: None,
            replacement: CounterReplacement::default(),
            carried_ratio: 0.0,
            least_references: 2,
            longest_blocks: 4,
            selection: HotSelection::default(),
            copy_references: 10,
            placement: HotPlacement::default(),
            when: CopyTime::default(),
            idle_ms: 100.0,
            share: 0.1,
            parallel_copies: 1,
            read_from: ReadSource::default(),
        }
    }
}

/// Largest number of blocks of a region, and of counters.
const MOST: u32 = 1 << 26;

static RULES: LazyLock<KeyRules> = LazyLock::new(KeyRules::from_type::<RearrangeSpec>);

impl RearrangeSpec {
    /// Keys drawn from a generator, for simulations that try every combination: the period is a second, so that copies and requests meet
    /// all the time. The region, the block, the counters and the selection are the defaults.
    pub fn drawn(random: &mut impl Rng) -> RearrangeSpec {
        RearrangeSpec {
            period_s: 1.0,
            replacement: CounterReplacement::all()[random.random_range(0..3)],
            carried_ratio: [0.0, 0.5][random.random_range(0..2)],
            least_references: random.random_range(1..3),
            longest_blocks: random.random_range(1..5),
            placement: HotPlacement::all()[random.random_range(0..3)],
            when: [CopyTime::Idle, CopyTime::Share, CopyTime::AtOnce][random.random_range(0..3)],
            idle_ms: [0.001, 20.0][random.random_range(0..2)],
            share: [0.2, 1.0][random.random_range(0..2)],
            parallel_copies: random.random_range(1..4),
            read_from: [ReadSource::Copy, ReadSource::Nearest][random.random_range(0..2)],
            ..RearrangeSpec::default()
        }
    }

    /// Checks that each value is in its range.
    ///
    /// *Errors:* the first value that is not.
    pub fn check(&self) -> Result<(), Fault> {
        RULES.check(self, "")?;
        if self.selection == HotSelection::Forecast && self.carried_ratio > 0.0 {
            let allowed = "0, as selection = \"forecast\" has averages of its own";
            return Err(outside("carried_ratio", self.carried_ratio, allowed));
        }
        Ok(())
    }

    /// Sectors of a block.
    ///
    /// *Errors:* a block is not a whole number of sectors.
    pub fn block_sectors(&self, sector_bytes: u32) -> Result<u64, Fault> {
        let sector_bytes = u64::from(sector_bytes);
        if !self.block_bytes.is_multiple_of(sector_bytes) {
            let allowed = format!("the multiples of the disk's sector of {sector_bytes} bytes");
            return Err(outside("block_bytes", self.block_bytes, allowed));
        }
        Ok(self.block_bytes / sector_bytes)
    }

    /// Sectors that `blocks` need on a disk of this size.
    ///
    /// *Errors:* they are not whole sectors, they do not leave a sector of the disk, or the region would begin behind its end.
    pub fn needed_sectors(&self, disk_sectors: u64, sector_bytes: u32) -> Result<u64, Fault> {
        let block_sectors = self.block_sectors(sector_bytes)?;
        if let Some(first) = self.first_lbn.filter(|first| *first >= disk_sectors) {
            return Err(outside("first_lbn", first, format!("0 to {}", disk_sectors.saturating_sub(1))));
        }
        let needed = u64::from(self.blocks) * block_sectors;
        self.check_room(disk_sectors.saturating_sub(1), block_sectors)?;
        Ok(needed)
    }

    /// Checks that `blocks` fit in a number of sectors.
    ///
    /// *Errors:* they do not.
    pub fn check_room(&self, sectors: u64, block_sectors: u64) -> Result<(), Fault> {
        let most = sectors / block_sectors;
        if u64::from(self.blocks) > most {
            let allowed =
                format!("the {most} blocks of {} bytes for which the disk has room", self.block_bytes);
            return Err(outside("blocks", self.blocks, allowed));
        }
        Ok(())
    }

    /// Counters of blocks: as many as given, or four for each block of the region.
    pub fn counters(&self) -> u32 {
        self.counters.unwrap_or(self.blocks.saturating_mul(4).min(MOST))
    }

    pub(super) fn period(&self) -> Nanos {
        Nanos::from_ms(self.period_s * 1e3)
    }

    pub(super) fn idle(&self) -> Nanos {
        Nanos::from_ms(self.idle_ms)
    }

    pub(super) fn carried(&self) -> CarriedShare {
        CarriedShare::from_ratio(self.carried_ratio)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn default_spec_passes_its_own_check() {
        assert_eq!(RearrangeSpec::default().check(), Ok(()));
    }

    #[test]
    fn out_of_range_value_is_rejected_with_its_key() {
        let message = |spec: RearrangeSpec| spec.check().expect_err("a value is out of range").to_string();
        let period = RearrangeSpec { period_s: 0.0, ..RearrangeSpec::default() };
        assert_eq!(message(period), "period_s: 0 is outside 1 to 100000000 s");
        let period = RearrangeSpec { period_s: f64::NAN, ..RearrangeSpec::default() };
        assert_eq!(message(period), "period_s: NaN is outside 1 to 100000000 s");
        let blocks = RearrangeSpec { blocks: 0, ..RearrangeSpec::default() };
        assert_eq!(message(blocks), "blocks: 0 is outside 1 to 67108864");
        let both = RearrangeSpec {
            carried_ratio: 0.5,
            selection: HotSelection::Forecast,
            ..RearrangeSpec::default()
        };
        assert_eq!(
            message(both),
            "carried_ratio: 0.5 is outside 0, as selection = \"forecast\" has averages of its own"
        );
        let counters = RearrangeSpec { counters: Some(0), ..RearrangeSpec::default() };
        assert_eq!(message(counters), "counters: 0 is outside 1 to 67108864");
    }

    #[test]
    fn block_is_a_whole_number_of_sectors() {
        assert_eq!(RearrangeSpec::default().block_sectors(512), Ok(16));
        let odd = RearrangeSpec { block_bytes: 6 << 10, ..RearrangeSpec::default() };
        let message = odd.block_sectors(4096).expect_err("it is one and a half").to_string();
        assert_eq!(message, "block_bytes: 6144 is outside the multiples of the disk's sector of 4096 bytes");
    }
}
