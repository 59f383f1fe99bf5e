//! The keys of the stream scheduler, with their defaults and ranges.

use headstack_model::Nanos;
use headstack_model::spec::{DurationLimits, Fault, KeyRules, within};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::sync::LazyLock;

/// The stream scheduler of a disk.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// Whether requests are scheduled; if not, each goes to the disk as it came.
    pub scheduling: bool,
    /// M: memory for read-ahead and for coalesced writes. The scheduler never uses more.
    #[schemars(range(min = Config::LEAST_MEMORY, max = 1_u64 << 40))]
    pub memory_bytes: u64,
    /// R: bytes of a request to the disk, at most half of the memory. Where D and N are 1, one request may fill the memory: the disk
    /// then waits until its bytes are fetched. By default the scheduler chooses R from the memory.
    #[schemars(range(min = 4 << 10))]
    pub read_ahead_bytes: Option<u64>,
    /// D: streams that have a turn at an arm of the disk at the same time. By default the scheduler chooses it.
    #[schemars(range(min = 1, max = 1 << 16))]
    pub dispatch_set: Option<u32>,
    /// Arms of the disk, each over an equal share of its bytes. By default as Linux reports them (`independent_access_ranges`), or 1; in a
    /// simulation one for each disk of a concatenation.
    #[schemars(range(min = 1, max = 64))]
    pub arms: Option<u32>,
    /// Times of the disk's command duration limits of reads, number 1 first, at most 7. A read of a client with a guarantee is sent with the
    /// longest limit that fits. By default those of a simulated drive; none for other disks. On Linux they are set by `cdladm`, and must
    /// be enabled (`device/cdl_enable`).
    #[schemars(length(max = DurationLimits::MOST), inner(range(min = 0.001, max = 1e6)))]
    pub read_limits_ms: Option<Vec<f64>>,
    /// N: requests to the disk in one turn of a stream. By default the scheduler chooses it from the measured bandwidth and
    /// positioning time.
    #[serde(alias = "requests_a_turn")]
    #[schemars(range(min = 1, max = 1 << 20))]
    pub requests_per_turn: Option<u32>,
    /// Share of the disk's own bandwidth that the chosen values aim at; a larger share makes turns, and so waits, longer.
    #[schemars(range(min = 0.5, max = 0.99))]
    pub efficiency: f64,
    /// Longest round of all waiting streams that the chosen values aim at.
    #[schemars(range(min = 1.0, max = 1e6))]
    pub round_ms: f64,
    /// Which stream has the next turn.
    pub turns: Turns,
    /// How the scheduler distinguishes streams from other requests.
    pub classifier: Classifier,
    /// Whether writes without FUA are coalesced: answered at once and written later, at the latest at a FLUSH.
    #[serde(alias = "gather_writes")]
    pub coalesce_writes: bool,
    /// Longest time that coalesced bytes wait for adjacent ones before they are written.
    #[serde(alias = "gather_ms")]
    #[schemars(range(min = 0.0, max = 1e6))]
    pub coalesce_ms: f64,
    /// Time without a request after which staged bytes are discarded and a stream ends.
    #[schemars(range(min = 1.0, max = 1e6))]
    pub idle_ms: f64,
    /// Commands in flight at the disk, at most.
    #[schemars(range(min = 1, max = 4096), extend("x-unit" = "commands"))]
    pub queue_depth: u32,
    /// Bytes in flight of requests that bypass the streams; a larger request is in flight alone.
    #[schemars(range(min = 4 << 10, max = 1_u64 << 40))]
    pub direct_bytes: u64,
    /// Share of the throughput that the guard against starvation in the disk's own queue may cost; 0 turns the guard off.
    #[schemars(range(min = 0.0, max = 0.5))]
    pub guard_cost: f64,
    /// Bytes of streams between two requests that bypass them, so that neither starves the other.
    #[serde(alias = "beside_bytes")]
    #[schemars(range(min = 0, max = 1_u64 << 40))]
    pub bypass_bytes: u64,
}

/// Which stream has the next turn.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Turns {
    /// The next one upward on the disk; each stream has one turn a round.
    #[default]
    Nearest,
    /// The one that has waited longest.
    RoundRobin,
}

/// Where the regions of the classifier lie, and what makes one a stream.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum RegionForm {
    /// Every `region_blocks` blocks of the disk are a region. Where R, D and N are not given, requests of a stream must also be in
    /// order.
    #[default]
    Fixed,
    /// As published: a request outside all regions gets one around its first block, which reaches half of `region_blocks`
    /// either way. The order of requests does not matter. Requests longer than that are no stream.
    Around,
}

/// How the scheduler distinguishes streams from other requests: by bitmaps of the blocks requested in each region.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Classifier {
    /// Where the regions lie.
    pub form: RegionForm,
    /// Bytes of the block that a bit stands for.
    #[schemars(range(min = 512, max = 1 << 30))]
    pub block_bytes: u64,
    /// Blocks of a region, which has one bitmap.
    #[schemars(range(min = 8, max = 128))]
    pub region_blocks: u32,
    /// Requested blocks of a region that make a stream.
    #[schemars(range(min = 2, max = 128))]
    pub threshold: u32,
    /// Time within which these blocks are requested.
    #[schemars(range(min = 1.0, max = 1e6))]
    pub window_ms: f64,
    /// Regions that are watched at a time; a new region evicts the least recently requested one.
    #[schemars(range(min = 16, max = 1 << 20))]
    pub regions: u32,
}

impl Default for Config {
    fn default() -> Config {
        Config {
            scheduling: true,
            memory_bytes: 8 << 20,
            read_ahead_bytes: None,
            dispatch_set: None,
            arms: None,
            read_limits_ms: None,
            requests_per_turn: None,
            efficiency: 0.92,
            round_ms: 15_000.0,
            turns: Turns::default(),
            classifier: Classifier::default(),
            coalesce_writes: true,
            coalesce_ms: 200.0,
            idle_ms: 30_000.0,
            queue_depth: 32,
            direct_bytes: 4 << 20,
            guard_cost: 0.05,
            bypass_bytes: 256 << 10,
        }
    }
}

impl Default for Classifier {
    fn default() -> Classifier {
        Classifier {
            form: RegionForm::default(),
            block_bytes: 4 << 10,
            region_blocks: 128,
            threshold: 16,
            window_ms: 20_000.0,
            regions: 4096,
        }
    }
}

impl Classifier {
    /// Blocks that a region around a request covers on either side of its first block.
    pub(super) fn offset(&self) -> u64 {
        u64::from(self.region_blocks - 1) / 2
    }

    /// Most blocks of a region, which the threshold may not exceed.
    fn threshold_max(&self) -> u64 {
        match self.form {
            RegionForm::Fixed => self.region_blocks.into(),
            RegionForm::Around => 2 * self.offset() + 1,
        }
    }
}

static RULES: LazyLock<KeyRules> = LazyLock::new(KeyRules::from_type::<Config>);

impl Config {
    /// Least stream memory.
    pub const LEAST_MEMORY: u64 = 256 << 10;

    /// Checks that each value is in its range.
    ///
    /// *Errors:* the first value that is not.
    pub fn check(&self) -> Result<(), Fault> {
        RULES.check(self, "")?;
        if let Some(r) = self.read_ahead_bytes {
            // M >= D R N, as published.
            let share = if (self.dispatch_set, self.requests_per_turn) == (Some(1), Some(1)) { 1 } else { 2 };
            let unit = "bytes: half of memory_bytes (all of it with dispatch_set and requests_per_turn 1)";
            within("read_ahead_bytes", r as f64, 4096.0, (self.memory_bytes / share) as f64, unit)?;
            if !r.is_multiple_of(4 << 10) {
                return Err(Fault::new("read_ahead_bytes", format!("{r} is no multiple of 4096")));
            }
        }
        let Classifier { block_bytes, threshold, .. } = self.classifier;
        if !block_bytes.is_power_of_two() {
            return Err(Fault::new("classifier.block_bytes", format!("{block_bytes} is no power of two")));
        }
        let most = self.classifier.threshold_max() as f64;
        within("classifier.threshold", f64::from(threshold), 2.0, most, "blocks, as many as a region has")
    }

    /// Bytes of a frame of the stream memory: R, or by default 1/32 of the memory, limited to 64 KiB to 1 MiB.
    pub(super) fn frame_bytes(&self) -> u64 {
        let chosen = (self.memory_bytes / 32).clamp(64 << 10, 1 << 20);
        self.read_ahead_bytes.unwrap_or(chosen).next_multiple_of(4 << 10)
    }

    /// The first byte of the range of each arm.
    pub(super) fn arm_firsts(&self, disk_bytes: u64) -> Vec<u64> {
        let arms = u64::from(self.arms.unwrap_or(1));
        let share = (disk_bytes / arms) >> 12 << 12;
        if share == 0 { vec![0] } else { (0..arms).map(|arm| arm * share).collect() }
    }

    /// R for frames of this size.
    pub(super) fn read_bytes(&self, frame_bytes: u64) -> u64 {
        self.read_ahead_bytes.map_or(frame_bytes, |bytes| bytes.min(frame_bytes))
    }

    /// Whether R, D or N is given. Then the published rules find and serve streams, and no measurement changes that.
    pub(super) fn is_as_published(&self) -> bool {
        self.read_ahead_bytes.is_some() || self.dispatch_set.is_some() || self.requests_per_turn.is_some()
    }

    pub(super) fn idle(&self) -> Nanos {
        Nanos::from_ms(self.idle_ms)
    }

    pub(super) fn coalesce(&self) -> Nanos {
        Nanos::from_ms(self.coalesce_ms)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn default_config_passes_its_own_check() {
        assert_eq!(Config::default().check(), Ok(()));
    }

    #[test]
    fn out_of_range_value_is_rejected_with_its_key() {
        let config = Config { memory_bytes: 4096, ..Config::default() };
        let message = config.check().expect_err("that is too little").to_string();
        assert_eq!(message, "memory_bytes: 4096 is outside 262144 to 1099511627776 bytes");
        let config = Config { read_ahead_bytes: Some(5000), ..Config::default() };
        let message = config.check().expect_err("it is none").to_string();
        assert_eq!(message, "read_ahead_bytes: 5000 is no multiple of 4096");
        let all = Config { read_ahead_bytes: Some(8 << 20), ..Config::default() };
        let message = all.check().expect_err("the next request needs room, too").to_string();
        assert!(
            message.starts_with("read_ahead_bytes: 8388608 is outside 4096 to 4194304 bytes: half"),
            "{message}"
        );
        let one = Config { dispatch_set: Some(1), requests_per_turn: Some(1), ..all };
        assert_eq!(one.check(), Ok(()));
        let classifier = Classifier { block_bytes: 1000, ..Classifier::default() };
        let message = Config { classifier, ..Config::default() }.check().expect_err("it is none").to_string();
        assert!(message.starts_with("classifier.block_bytes: 1000 is no power of two"), "{message}");
        let around = |threshold| Classifier { form: RegionForm::Around, threshold, ..Classifier::default() };
        let [whole, more] =
            [127, 128].map(|blocks| Config { classifier: around(blocks), ..Config::default() });
        assert_eq!(whole.check(), Ok(()));
        assert_eq!(more.check().expect_err("a region has 127").key, "classifier.threshold");
        for limits in [vec![50.0; 8], vec![50.0, 0.0], vec![f64::NAN]] {
            let config = Config { read_limits_ms: Some(limits), ..Config::default() };
            assert_eq!(config.check().expect_err("a disk has no such limits").key, "read_limits_ms");
        }
        let config = Config { efficiency: f64::NAN, ..Config::default() };
        assert_eq!(config.check().expect_err("that is none").key, "efficiency");
    }
}
