//! The keys of the load file, and their checks without a rig.

use headstack_model::spec::{Fault, KeyRules};
use headstack_model::{Nanos, Op};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::sync::LazyLock;

use super::area::Area;
use super::benchmarks::{BonnieSpec, HdparmSpec, IozoneSpec};
use headstack_workload::dist::{Distribution, Popularity};
use headstack_workload::process::SyntheticSpec;

/// The most of anything that there may be many of: streams, processes, requests outstanding.
const MANY: u64 = 1 << 16;

/// The contents of a load file.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct LoadSpec {
    /// The load ends after this number of requests.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    pub requests: Option<u64>,
    /// The load issues nothing from this time on, and ends when its outstanding requests have completed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1e-9, max = 1e9))]
    pub max_time_s: Option<f64>,
    /// Number of processors that the processes of all tables `process` share. A process's own time (`gap`, `time_limit`) passes
    /// while it has a processor, which it keeps until it waits; the others queue. Default: one for each process.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = MANY))]
    pub processors: Option<u32>,
    /// A processor other than the first idles for the rest of the run once it runs out of processes, as in DiskSim.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    #[serde(alias = "processors_idle_for_good")]
    pub idle_cpu_never_wakes: bool,
    /// Single requests: random, in sequence, or to popular groups of blocks.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub blocks: Vec<BlocksSpec>,
    /// Sequential streams.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub stream: Vec<StreamSpec>,
    /// Runs of blocks at random places.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub burst: Vec<BurstSpec>,
    /// Synthetic processes.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub process: Vec<SyntheticSpec>,
    /// The benchmark Bonnie on an ext2.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bonnie: Option<BonnieSpec>,
    /// The benchmark `hdparm -t`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hdparm: Option<HdparmSpec>,
    /// The benchmark IOzone on an ext2.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub iozone: Option<IozoneSpec>,
}

/// The order of single requests.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Order {
    /// Anywhere.
    #[default]
    Random,
    /// In rising order, and after the last block again from the first.
    Sequential,
}

/// Reads or writes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Direction {
    /// Reads.
    #[default]
    Read,
    /// Writes.
    Write,
}

impl From<Direction> for Op {
    fn from(direction: Direction) -> Op {
        match direction {
            Direction::Read => Op::Read,
            Direction::Write => Op::Write,
        }
    }
}

/// Single requests: random, in sequence, or to popular groups of blocks. Exactly one of `depth`, `processes` and `gap` is required.
/// Processes that read in sequence begin at evenly spaced blocks. Pairs of groups exchange their popularity at regular intervals, so that
/// after t hours the share exp(-`drift_per_hour` · t) of the groups has its original popularity.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct BlocksSpec {
    /// The blocks used.
    #[serde(default)]
    pub area: Area,
    /// The order of the requests.
    #[serde(default)]
    pub order: Order,
    /// Size of requests.
    #[serde(default = "request_bytes")]
    pub request_bytes: u64,
    /// Requests begin at multiples of this (in a group: counted from its start). Default: their size.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub alignment_bytes: Option<u64>,
    /// Share of reads; the others are writes.
    #[serde(default = "all")]
    #[schemars(range(min = 0.0, max = 1.0))]
    pub read_share: f64,
    /// Number of requests outstanding at all times.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = MANY))]
    pub depth: Option<u32>,
    /// Number of processes that think, issue a request and wait.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = MANY))]
    pub processes: Option<u32>,
    /// Time from a completion to the process's next request, a distribution of times. Default: none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub think_time: Option<Distribution<Nanos>>,
    /// Time between two arrivals, whether or not earlier requests are done; a distribution of times.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gap: Option<Distribution<Nanos>>,
    /// Popularity of groups of blocks; not with `processes`. Default: all blocks are equal.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub popularity: Option<Popularity>,
    /// Size of a group, with `popularity`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub group_bytes: Option<u64>,
    /// Share of the groups that change their popularity in an hour.
    #[serde(default)]
    pub drift_per_hour: f64,
    /// The table ends after this number of requests.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    pub requests: Option<u64>,
}

/// Sequential streams.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct StreamSpec {
    /// The blocks used.
    #[serde(default)]
    pub area: Area,
    /// Number of streams.
    #[serde(default = "one")]
    #[schemars(range(min = 1, max = MANY))]
    pub streams: u32,
    /// Distance between the starts of streams; each stream continues to the area's end. Without this key the area is divided evenly among
    /// the streams, and a stream that reaches the end of its part continues at the start of that part.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    pub interval_bytes: Option<u64>,
    /// Requests that each stream has outstanding.
    #[serde(default = "one")]
    #[schemars(range(min = 1, max = MANY))]
    pub depth: u32,
    /// Size of requests.
    #[serde(default = "request_bytes")]
    pub request_bytes: u64,
    /// Streams begin at multiples of this. Default: the size of requests.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub alignment_bytes: Option<u64>,
    /// Reads or writes.
    #[serde(default)]
    pub op: Direction,
    /// Each stream ends after this number of requests.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    pub requests_each: Option<u64>,
    /// The table ends after this number of requests.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    pub requests: Option<u64>,
}

/// Runs of blocks at random places: the (p, s, r) load.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct BurstSpec {
    /// The blocks used.
    #[serde(default)]
    pub area: Area,
    /// Number of processes (p); each has one request outstanding.
    #[serde(default = "one")]
    #[schemars(range(min = 1, max = MANY))]
    pub processes: u32,
    /// Bytes per run (s), rounded up to whole sectors.
    #[schemars(range(min = 1))]
    pub run_bytes: u64,
    /// Runs of each process (r), each at a new random place.
    #[serde(default = "times")]
    #[schemars(range(min = 1))]
    pub times: u64,
    /// Largest request of a run.
    #[serde(default = "request_bytes")]
    pub request_bytes: u64,
    /// Runs begin at multiples of this. Default: a sector.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub alignment_bytes: Option<u64>,
    /// Reads or writes.
    #[serde(default)]
    pub op: Direction,
}

fn one() -> u32 {
    1
}

fn times() -> u64 {
    1
}

fn all() -> f64 {
    1.0
}

fn request_bytes() -> u64 {
    4096
}

static RULES: LazyLock<KeyRules> = LazyLock::new(KeyRules::from_type::<LoadSpec>);

impl LoadSpec {
    /// Writes the keys as a load file.
    pub fn to_toml(&self) -> String {
        toml::to_string(self).expect("every load is expressible in TOML")
    }

    /// Checks that need no rig.
    pub(super) fn check(&self) -> Result<(), Fault> {
        RULES.check(self, "")?;
        let tables = [self.blocks.len(), self.stream.len(), self.burst.len(), self.process.len()];
        let benchmarks = [self.bonnie.is_some(), self.hdparm.is_some(), self.iozone.is_some()];
        let benchmarks = benchmarks.into_iter().filter(|is_there| *is_there).count();
        if tables.iter().sum::<usize>() + benchmarks == 0 {
            let message = "the load asks for nothing: it needs a table, such as blocks, process or bonnie";
            return Err(Fault::new("", message));
        }
        if benchmarks > 1 {
            return Err(Fault::new(
                "",
                "give only one of bonnie, hdparm and iozone: each has the volume for itself",
            ));
        }
        self.bonnie.iter().try_for_each(BonnieSpec::check)?;
        self.iozone.iter().try_for_each(IozoneSpec::check)?;
        let ends = self.requests.is_some() || self.max_time_s.is_some();
        for (index, table) in self.blocks.iter().enumerate() {
            let key = format!("blocks[{index}]");
            ends_with(&key, ends || table.requests.is_some())?;
            table.check(&key)?;
        }
        for (index, table) in self.stream.iter().enumerate() {
            let key = format!("stream[{index}]");
            ends_with(&key, ends || table.requests.is_some() || table.requests_each.is_some())?;
            table.check(&key)?;
        }
        for (index, table) in self.process.iter().enumerate() {
            let key = format!("process[{index}]");
            ends_with(&key, ends)?;
            table.check().map_err(|error| Fault::new(format!("{key}.{}", error.key()), error.to_string()))?;
        }
        Ok(())
    }
}

/// Checks that a table or the whole load has an end.
fn ends_with(key: &str, ends: bool) -> Result<(), Fault> {
    let message = "it never ends: give requests here, or requests or max_time_s for the whole load";
    if ends { Ok(()) } else { Err(Fault::new(key, message)) }
}

impl BlocksSpec {
    fn check(&self, key: &str) -> Result<(), Fault> {
        let at = |name: &str| format!("{key}.{name}");
        match [self.depth.is_some(), self.processes.is_some(), self.gap.is_some()] {
            [true, false, false] | [false, true, false] | [false, false, true] => {}
            [false, false, false] => return Err(Fault::new(key, "give one of depth, processes and gap")),
            _ => return Err(Fault::new(key, "give only one of depth, processes and gap")),
        }
        let useless = [
            ("think_time", self.think_time.is_some() && self.processes.is_none(), "processes"),
            ("group_bytes", self.group_bytes.is_some() && self.popularity.is_none(), "popularity"),
            ("drift_per_hour", self.drift_per_hour != 0.0 && self.popularity.is_none(), "popularity"),
        ];
        if let Some((name, _, missing)) = useless.into_iter().find(|(_, useless, _)| *useless) {
            return Err(Fault::new(at(name), format!("it says nothing without {missing}")));
        }
        match &self.popularity {
            None => Ok(()),
            Some(_) if self.group_bytes.is_none() => {
                Err(Fault::new(at("popularity"), "it needs group_bytes"))
            }
            Some(_) if self.processes.is_some() => {
                Err(Fault::new(at("popularity"), "it goes with depth or gap, not with processes"))
            }
            Some(_) if self.order == Order::Sequential => {
                Err(Fault::new(at("order"), "`sequential` does not go with popularity"))
            }
            Some(_) => Ok(()),
        }
    }
}

impl StreamSpec {
    fn check(&self, key: &str) -> Result<(), Fault> {
        let both = u64::from(self.streams) * u64::from(self.depth);
        if both > 16 * MANY {
            let message =
                format!("{both} requests outstanding in all streams, where {} are allowed", 16 * MANY);
            return Err(Fault::new(format!("{key}.depth"), message));
        }
        Ok(())
    }
}
