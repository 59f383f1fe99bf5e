//! The keys of a node file. A field here is the key in the file; its doc comment is its documentation.

use headstack_host::memory;
use headstack_host::{Clock, Rules, TlsSettings};
use headstack_model::Nanos;
use headstack_model::spec::{Fault, KeyRules};
use headstack_nbd::{Allow, Budget, Limits};
use headstack_policy::admission::Guarantee;
use headstack_streams::position::PositionOrder;
use headstack_streams::rearrange::{CopyTime, CounterReplacement, HotPlacement, ReadSource, RearrangeSpec};
use headstack_streams::streams::Config;
use schemars::{JsonSchema, Schema, schema_for};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::path::PathBuf;
use std::sync::LazyLock;

/// The ranges of the keys.
pub(super) static RULES: LazyLock<KeyRules> = LazyLock::new(KeyRules::from_type::<NodeSpec>);

/// A storage node: the contents of the file of `headstack serve CONFIG.toml`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct NodeSpec {
    /// Addresses at which the node listens: `unix:PATH`, `HOST:PORT`, `:PORT`. Each has all exports. Not required where systemd
    /// passes the sockets.
    pub(crate) listen: Vec<String>,
    /// Address of the statistics over HTTP: `HOST:PORT`, or `:PORT` for 127.0.0.1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) metrics: Option<String>,
    /// User to change to after opening disks and sockets, by name or number; for a node started by root.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) user: Option<String>,
    /// TLS for clients, within the protocol (STARTTLS). Without it everything crosses the network unencrypted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) tls: Option<TlsSettings>,
    /// Limits of clients' memory and time.
    pub(crate) limits: LimitsSpec,
    /// The disks, each with a thread and a stream memory of its own.
    pub(crate) disk: Vec<DiskSpec>,
    /// The exports. Without any, each disk is exported under its name.
    pub(crate) export: Vec<ExportSpec>,
}

/// `[limits]`: limits of clients' memory and time.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct LimitsSpec {
    /// Connections at a time; one eighth of them is reserved for Unix sockets. A further client is refused unless it replaces an
    /// idle connection. There are fewer if 256 KiB of each were more than a quarter of the memory of the control group or the machine.
    #[schemars(range(min = 1, max = 1 << 20))]
    pub(crate) connections: usize,
    /// Connections at a time from one network address (IPv6: one 64-bit prefix). Default: three quarters of `connections`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 1 << 20))]
    pub(crate) connections_per_address: Option<usize>,
    /// Requests in flight of one connection; further requests wait.
    #[schemars(range(min = 1, max = 1 << 20))]
    pub(crate) requests: usize,
    /// Bytes of requests and replies in flight of one connection; a single larger request is in flight alone.
    #[schemars(range(min = 4096, max = 1_u64 << 40))]
    pub(crate) in_flight_bytes: usize,
    /// Bytes of memory of all connections together, in addition to 256 KiB of each. A connection that needs more is not read from
    /// until others release memory. Default: a quarter of the memory of the control group or the machine, at most 512 MiB and at
    /// least 32 MiB, or `in_flight_bytes` if that is more than 512 MiB.
    #[serde(alias = "in_flight_bytes_together", skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = Budget::LEAST, max = 1_u64 << 40))]
    pub(crate) total_in_flight_bytes: Option<usize>,
    /// Time without a request after which a new client may replace a connection when all are in use. The longest idle connection
    /// of the address with the most connections is replaced.
    #[schemars(range(min = 1.0, max = 1e8))]
    pub(crate) idle_ms: f64,
    /// Time for a client to choose an export.
    #[schemars(range(min = 1.0, max = 1e8))]
    pub(crate) handshake_ms: f64,
    /// Time for a complete request to arrive, from its first byte.
    #[schemars(range(min = 1.0, max = 1e8))]
    pub(crate) request_ms: f64,
    /// Time for a client to take a reply, from one of its bytes to the next.
    #[schemars(range(min = 1.0, max = 1e8))]
    pub(crate) reply_ms: f64,
}

impl Default for LimitsSpec {
    fn default() -> LimitsSpec {
        let limits = Limits::default();
        LimitsSpec {
            connections: Rules::default().connections,
            connections_per_address: None,
            requests: limits.requests,
            in_flight_bytes: limits.held_bytes,
            total_in_flight_bytes: None,
            idle_ms: Rules::default().idle.as_ms(),
            handshake_ms: limits.handshake.as_ms(),
            request_ms: limits.request.as_ms(),
            reply_ms: limits.reply.as_ms(),
        }
    }
}

/// Largest default of the bytes of requests and replies that all connections may have in flight.
const TOGETHER: usize = 512 << 20;

impl LimitsSpec {
    /// The limits, whose keys are in their ranges, as rules of the server.
    ///
    /// *Errors:* all connections together may have less than one.
    pub(super) fn rules(&self) -> Result<Rules, Fault> {
        let usual = self.connections - self.connections / 4;
        let allowed = memory::allowed();
        let together = match self.total_in_flight_bytes {
            Some(bytes) if bytes < self.in_flight_bytes => {
                let message =
                    format!("{bytes} is less than `in_flight_bytes`, which one connection may have");
                return Err(Fault::new("limits.total_in_flight_bytes", message));
            }
            Some(bytes) => bytes,
            None if self.in_flight_bytes > TOGETHER => self.in_flight_bytes,
            None => memory::default_budget(allowed),
        };
        let limits = Limits {
            requests: self.requests,
            held_bytes: self.in_flight_bytes.min(together),
            handshake: Nanos::from_ms(self.handshake_ms),
            request: Nanos::from_ms(self.request_ms),
            reply: Nanos::from_ms(self.reply_ms),
            ..Limits::default()
        };
        Ok(Rules {
            limits,
            connections: self.connections.min(memory::connections(allowed)),
            connections_per_address: self.connections_per_address.unwrap_or(usual),
            idle: Nanos::from_ms(self.idle_ms),
            budget: Some(Budget::new(together)),
            ..Rules::default()
        })
    }
}

/// `[disk]`: one disk, given by `path`, `emulate` or `ram_bytes`. A disk belongs to one node only: the node does not see what
/// others write to it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct DiskSpec {
    /// Name in exports, statistics and errors. Default: the name of its file, else disk0, disk1 and so on by its position.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) name: Option<String>,
    /// A block device or a file.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) path: Option<PathBuf>,
    /// An emulated disk in this process: a drive or a rig of one volume, shipped or a file.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) emulate: Option<String>,
    /// The file of an emulated disk's data. Default: memory, lost at the end of the process.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) data: Option<PathBuf>,
    /// Speed of an emulated disk relative to a real one.
    #[schemars(range(min = 0.001, max = Clock::FASTEST))]
    pub(crate) speed: f64,
    /// Size of a disk in memory, whose contents are lost at the end of the process.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) ram_bytes: Option<u64>,
    /// Whether it is opened read-only.
    pub(crate) read_only: bool,
    /// Whether a block device or file is accessed through the system's page cache instead of O_DIRECT.
    pub(crate) buffered: bool,
    /// Whether to use threads instead of io_uring. Threads are also used where the system refuses io_uring.
    pub(crate) threads: bool,
    /// A map of its tracks from `headstack probe --map`: requests of streams to the disk then end at track boundaries, where that
    /// leaves at least a quarter of their length.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) map: Option<PathBuf>,
    /// A drive file from `headstack probe -o`, or the name of a shipped drive: where its blocks lie, for `order`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) drive: Option<String>,
    /// Order of its commands: `cylinder` (`c-look-cylinder`), `position` (`sptf`), or an order of the simulator that needs no
    /// more than positions. Until the ends of reads agree with `drive`, and whenever they cease to, the order is by block number.
    /// Default: commands go to the disk as they come.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) order: Option<String>,
    /// Largest number of commands at the disk, with `order`. Positions are exact with 1. Default: 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = PositionOrder::MOST_WINDOW), extend("x-unit" = "commands"))]
    pub(crate) window: Option<u32>,
    /// How its hot blocks are copied together, in a region that `headstack rearrange format` makes. A disk with a region is served only
    /// with this table.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) rearrange: Option<CopiesSpec>,
    /// Its worst-case ability, on which guarantees of exports are based.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) ability: Option<AbilitySpec>,
    /// Its stream memory, and how streams are detected and served.
    pub(crate) streams: Config,
}

impl Default for DiskSpec {
    fn default() -> DiskSpec {
        DiskSpec {
            name: None,
            path: None,
            emulate: None,
            data: None,
            speed: 1.0,
            ram_bytes: None,
            read_only: false,
            buffered: false,
            threads: false,
            map: None,
            drive: None,
            order: None,
            window: None,
            rearrange: None,
            ability: None,
            streams: Config::default(),
        }
    }
}

/// `[disk.rearrange]`: which blocks are copied to the disk's reserved region, and when. The disk itself says where the region is.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
#[schemars(transform = as_in_a_rig)]
pub(crate) struct CopiesSpec {
    /// Time from one rearrangement to the next. After an orderly end it continues where it stopped; after a crash it begins again.
    pub(crate) period_s: f64,
    pub(crate) replacement: CounterReplacement,
    pub(crate) carried_ratio: f64,
    /// References in a period that make a block worth a copy.
    pub(crate) least_references: u64,
    pub(crate) longest_blocks: u32,
    /// How hot blocks are placed in the region; a cylinder counts as 1 MiB.
    pub(crate) placement: HotPlacement,
    pub(crate) when: CopyTime,
    pub(crate) idle_ms: f64,
    pub(crate) share: f64,
    pub(crate) parallel_copies: u32,
    /// Where a copied block is read that was not written since it was copied.
    pub(crate) read_from: ReadSource,
}

/// Gives the keys of [`CopiesSpec`] the ranges and, where they have none, the descriptions of those of [`RearrangeSpec`].
fn as_in_a_rig(schema: &mut Schema) {
    let rig = schema_for!(RearrangeSpec).to_value();
    let keys = schema.get_mut("properties").and_then(Value::as_object_mut);
    for (key, own) in keys.into_iter().flatten().filter_map(|(key, own)| Some((key, own.as_object_mut()?))) {
        for (part, value) in rig["properties"][key].as_object().into_iter().flatten() {
            if part != "description" || !own.contains_key(part) {
                own.insert(part.clone(), value.clone());
            }
        }
    }
}

impl Default for CopiesSpec {
    fn default() -> CopiesSpec {
        let RearrangeSpec { period_s, replacement, carried_ratio, least_references, longest_blocks, .. } =
            RearrangeSpec::default();
        let RearrangeSpec { placement, when, idle_ms, share, parallel_copies, read_from, .. } =
            RearrangeSpec::default();
        CopiesSpec {
            period_s,
            replacement,
            carried_ratio,
            least_references,
            longest_blocks,
            placement,
            when,
            idle_ms,
            share,
            parallel_copies,
            read_from,
        }
    }
}

impl CopiesSpec {
    /// The keys of the rearranger. The table on the disk has those of the region.
    pub(super) fn keys(&self) -> RearrangeSpec {
        RearrangeSpec {
            period_s: self.period_s,
            replacement: self.replacement,
            carried_ratio: self.carried_ratio,
            least_references: self.least_references,
            longest_blocks: self.longest_blocks,
            placement: self.placement,
            when: self.when,
            idle_ms: self.idle_ms,
            share: self.share,
            parallel_copies: self.parallel_copies,
            read_from: self.read_from,
            ..RearrangeSpec::default()
        }
    }
}

/// `[disk.ability]`: the worst-case ability of a disk.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct AbilitySpec {
    /// Media rate in the slowest zone.
    #[schemars(range(min = 1))]
    pub(crate) bandwidth_bytes_per_s: u64,
    /// Longest time from the end of one transfer to the beginning of another, anywhere on the disk.
    #[schemars(range(min = 0.001, max = 10_000.0))]
    pub(crate) positioning_ms: f64,
    /// Share of the disk's time that may be guaranteed; the rest is for all other requests.
    #[serde(default = "most")]
    #[schemars(range(min = 0.01, max = 1.0))]
    pub(crate) share: f64,
}

fn most() -> f64 {
    0.8
}

/// `[export]`: a disk as clients see it. A disk may have several.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ExportSpec {
    /// The name of the disk.
    pub(crate) disk: String,
    /// Name by which clients choose it. Default: the disk's name. A client without a name gets the first export.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) name: Option<String>,
    /// Description for people. Default: a description of the disk.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) description: Option<String>,
    /// Whether it refuses writes.
    #[serde(default)]
    pub(crate) read_only: bool,
    /// Clients that may see and use it: an address, a network (`10.0.0.0/8`), `unix` for all clients of Unix sockets, `uid:NUMBER`
    /// for a user there, or `cert:NAME` for the names in a client's certificate. Empty: all clients.
    #[serde(default)]
    pub(crate) allow: Vec<Allow>,
    /// Guarantee of each connection, for all its streams. The disk's `ability` limits their number; further connections are
    /// refused.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) guarantee: Option<Guarantee>,
}
