//! The keys of the stream scheduler: each its name in files, its meaning, its default and its range.

use headstack_model::Nanos;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// How a disk's requests are scheduled.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// Whether there is any scheduling; without it each request goes to the disk as it is.
    pub scheduling: bool,
    /// M: memory for what is read ahead and for writes that are gathered. Never more is used.
    pub memory_bytes: u64,
    /// R: bytes of a request to the disk. Chosen from what the disk was measured to do where it is not given.
    pub read_ahead_bytes: Option<u64>,
    /// D: streams whose requests the disk works on at a time. Chosen where it is not given.
    pub dispatch_set: Option<u32>,
    /// N: requests to the disk that a stream may have a turn. Chosen where it is not given.
    pub requests_a_turn: Option<u32>,
    /// Share of the disk's own bandwidth that chosen values are to reach; more makes turns, and so waits, longer.
    pub efficiency: f64,
    /// Longest that a round of all waiting streams is to take where values are chosen.
    pub round_ms: f64,
    /// Which stream has the next turn.
    pub turns: Turns,
    /// How streams are told from other requests.
    pub classifier: Classifier,
    /// Whether writes that are not forced to the media are gathered: answered at once and written later, at a FLUSH at
    /// the latest.
    pub gather_writes: bool,
    /// How long gathered bytes wait for more.
    pub gather_ms: f64,
    /// After how long staged bytes that nobody asks for, and streams that do not go on, are given up.
    pub idle_ms: f64,
    /// Commands that the disk has at a time.
    pub queue_depth: u32,
    /// Bytes of requests beside streams that are under way at a time; one larger goes alone.
    pub direct_bytes: u64,
    /// Share of the throughput that may go to keeping requests from being passed over in the disk's own queue; 0 for no such
    /// guard.
    pub guard_cost: f64,
    /// Bytes of streams between two requests beside them, so that neither starves the other.
    pub beside_bytes: u64,
}

/// Which stream has the next turn.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Turns {
    /// The next upward on the disk, each once a round.
    #[default]
    Nearest,
    /// Who waits longest.
    RoundRobin,
}

/// How streams are told from other requests: by bits for blocks that were asked for around a place.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Classifier {
    /// Bytes that a bit stands for.
    pub block_bytes: u64,
    /// Blocks of a region, which has one bitmap.
    pub region_blocks: u32,
    /// Blocks of a region that were asked for by the time it is a stream.
    pub threshold: u32,
    /// Time within which they were.
    pub window_ms: f64,
    /// Regions that are watched at a time; the one asked for longest ago gives way.
    pub regions: u32,
}

impl Default for Config {
    fn default() -> Config {
        Config {
            scheduling: true,
            memory_bytes: 8 << 20,
            read_ahead_bytes: None,
            dispatch_set: None,
            requests_a_turn: None,
            efficiency: 0.92,
            round_ms: 15_000.0,
            turns: Turns::default(),
            classifier: Classifier::default(),
            gather_writes: true,
            gather_ms: 200.0,
            idle_ms: 30_000.0,
            queue_depth: 32,
            direct_bytes: 4 << 20,
            guard_cost: 0.05,
            beside_bytes: 256 << 10,
        }
    }
}

impl Default for Classifier {
    fn default() -> Classifier {
        Classifier {
            block_bytes: 4 << 10,
            region_blocks: 128,
            threshold: 16,
            window_ms: 20_000.0,
            regions: 4096,
        }
    }
}

/// A key with a value that it cannot have.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{key}: {met} is outside {allowed}")]
pub struct ConfigError {
    /// Which.
    pub key: &'static str,
    met: String,
    allowed: &'static str,
}

impl Config {
    /// Least stream memory.
    pub const LEAST_MEMORY: u64 = 256 << 10;

    /// Whether each value is in its range.
    ///
    /// *Errors:* the first that is not.
    pub fn check(&self) -> Result<(), ConfigError> {
        const MOST: u64 = 1 << 40;
        let Classifier { block_bytes, region_blocks, threshold, window_ms, regions } = self.classifier;
        let whole = |key, met: u64, least: u64, most: u64, allowed| {
            (least..=most).contains(&met).then_some(()).ok_or(ConfigError {
                key,
                met: met.to_string(),
                allowed,
            })
        };
        let real = |key, met: f64, least: f64, most: f64, allowed| {
            (least..=most).contains(&met).then_some(()).ok_or(ConfigError {
                key,
                met: met.to_string(),
                allowed,
            })
        };
        whole("memory_bytes", self.memory_bytes, Config::LEAST_MEMORY, MOST, "256 KiB to 1 TiB")?;
        let r = self.read_ahead_bytes.unwrap_or(64 << 10);
        whole("read_ahead_bytes", r, 4 << 10, self.memory_bytes / 2, "4 KiB to half of memory_bytes")?;
        if !r.is_multiple_of(4 << 10) {
            let (key, met) = ("read_ahead_bytes", r.to_string());
            return Err(ConfigError { key, met, allowed: "multiples of 4096" });
        }
        whole("dispatch_set", self.dispatch_set.unwrap_or(1).into(), 1, 1 << 16, "1 to 65536")?;
        whole("requests_a_turn", self.requests_a_turn.unwrap_or(1).into(), 1, 1 << 20, "1 to 1048576")?;
        real("efficiency", self.efficiency, 0.5, 0.99, "0.5 to 0.99")?;
        real("round_ms", self.round_ms, 1.0, 1e6, "1 to 1000000")?;
        if !block_bytes.is_power_of_two() || !(512..=1 << 30).contains(&block_bytes) {
            let (key, met) = ("classifier.block_bytes", block_bytes.to_string());
            return Err(ConfigError { key, met, allowed: "powers of two from 512 to 1073741824" });
        }
        whole("classifier.region_blocks", region_blocks.into(), 8, 128, "8 to 128")?;
        whole("classifier.threshold", threshold.into(), 2, region_blocks.into(), "2 to region_blocks")?;
        real("classifier.window_ms", window_ms, 1.0, 1e6, "1 to 1000000")?;
        whole("classifier.regions", regions.into(), 16, 1 << 20, "16 to 1048576")?;
        real("gather_ms", self.gather_ms, 0.0, 1e6, "0 to 1000000")?;
        real("idle_ms", self.idle_ms, 1.0, 1e6, "1 to 1000000")?;
        whole("queue_depth", self.queue_depth.into(), 1, 4096, "1 to 4096")?;
        real("guard_cost", self.guard_cost, 0.0, 0.5, "0 to 0.5")?;
        whole("direct_bytes", self.direct_bytes, 4 << 10, MOST, "4 KiB to 1 TiB")?;
        whole("beside_bytes", self.beside_bytes, 0, MOST, "0 to 1 TiB")
    }

    /// Bytes of a frame of the stream memory: R, or what suits the memory.
    pub(super) fn frame_bytes(&self) -> u64 {
        let chosen = (self.memory_bytes / 32).clamp(64 << 10, 1 << 20);
        self.read_ahead_bytes.unwrap_or(chosen).next_multiple_of(4 << 10)
    }

    /// R, where frames are that large.
    pub(super) fn read_bytes(&self, frame_bytes: u64) -> u64 {
        self.read_ahead_bytes.map_or(frame_bytes, |bytes| bytes.min(frame_bytes))
    }

    /// Whether R, D or N is given: then streams are found and served by the published rules, and nothing is measured that could
    /// have them served otherwise.
    pub(super) fn is_as_published(&self) -> bool {
        self.read_ahead_bytes.is_some() || self.dispatch_set.is_some() || self.requests_a_turn.is_some()
    }

    pub(super) fn idle(&self) -> Nanos {
        Nanos::from_ms(self.idle_ms)
    }

    pub(super) fn gather(&self) -> Nanos {
        Nanos::from_ms(self.gather_ms)
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
        let told = config.check().expect_err("that is too little").to_string();
        assert_eq!(told, "memory_bytes: 4096 is outside 256 KiB to 1 TiB");
        let config = Config { read_ahead_bytes: Some(5000), ..Config::default() };
        let told = config.check().expect_err("it is none").to_string();
        assert_eq!(told, "read_ahead_bytes: 5000 is outside multiples of 4096");
        let classifier = Classifier { block_bytes: 1000, ..Classifier::default() };
        let told = Config { classifier, ..Config::default() }.check().expect_err("it is none").to_string();
        assert!(told.starts_with("classifier.block_bytes: 1000 is outside powers of two"), "{told}");
        let config = Config { efficiency: f64::NAN, ..Config::default() };
        assert_eq!(config.check().expect_err("that is none").key, "efficiency");
    }
}
