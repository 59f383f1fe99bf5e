//! The keys of a node file. A field here is the key in the file; its doc comment is its documentation.

use headstack_host::{Rules, TlsSettings};
use headstack_model::Nanos;
use headstack_model::spec::Fault;
use headstack_nbd::{Allow, Budget, Limits};
use headstack_policy::admission::Guarantee;
use headstack_policy::streams::Config;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// A storage node: what `headstack serve CONFIG.toml` reads.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct NodeSpec {
    /// Where clients find the node: `unix:PATH`, `HOST:PORT`, `:PORT`. All exports are at each. Not needed where systemd hands
    /// over its sockets.
    pub(crate) listen: Vec<String>,
    /// Where figures are served over HTTP: `HOST:PORT`, or `:PORT` at 127.0.0.1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) metrics: Option<String>,
    /// Who to go on as, by name or number, once disks and sockets are open: for a node that root starts.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) user: Option<String>,
    /// TLS for clients, within the protocol (STARTTLS). Without it everything crosses the network as it is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) tls: Option<TlsSettings>,
    /// What clients may ask of the node's memory and patience.
    pub(crate) limits: LimitsSpec,
    /// The disks, each with a thread and a stream memory of its own.
    pub(crate) disk: Vec<DiskSpec>,
    /// What clients can choose. Without any, each disk is exported under its name.
    pub(crate) export: Vec<ExportSpec>,
}

/// `[limits]`: what clients may ask of the node's memory and patience.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct LimitsSpec {
    /// Connections at a time; one eighth of them is reserved for Unix sockets. A further client is refused unless it replaces an
    /// idle connection.
    pub(crate) connections: usize,
    /// Connections at a time from one network address (IPv6: one 64-bit prefix). Default: three quarters of `connections`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) connections_per_address: Option<usize>,
    /// Requests in flight of one connection; further requests wait.
    pub(crate) requests: usize,
    /// Bytes of requests and replies in flight of one connection; a single larger request is in flight alone.
    pub(crate) in_flight_bytes: usize,
    /// Bytes in flight of all connections together, in addition to 256 KiB of each. A connection that needs more is not read from
    /// until others release memory. Default: 512 MiB, or `in_flight_bytes` if that is more.
    #[serde(alias = "total_in_flight_bytes", skip_serializing_if = "Option::is_none")]
    pub(crate) total_in_flight_bytes: Option<usize>,
    /// Time without a request after which a new client may replace a connection when all are in use. The longest idle connection
    /// of the address with the most connections is replaced.
    pub(crate) idle_ms: f64,
    /// Time for a client to choose an export.
    pub(crate) handshake_ms: f64,
    /// Time for a complete request to arrive, from its first byte.
    pub(crate) request_ms: f64,
    /// Time for a client to take a reply, from one of its bytes to the next.
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

/// Bytes of requests and replies that all connections may have under way where the file says nothing.
const TOGETHER: usize = 512 << 20;

impl LimitsSpec {
    /// The rules that these are.
    ///
    /// *Errors:* the first key whose value is out of its range.
    pub(super) fn rules(&self) -> Result<Rules, Fault> {
        let wrong = |key: &str, met: String, allowed: &str| {
            Fault::new(format!("limits.{key}"), format!("{met} is outside {allowed}"))
        };
        let usual = self.connections - self.connections / 4;
        let of_address = self.connections_per_address.unwrap_or(usual);
        let counts = [
            ("connections", self.connections),
            ("connections_per_address", of_address),
            ("requests", self.requests),
        ];
        for (key, met) in counts {
            if !(1..=1 << 20).contains(&met) {
                return Err(wrong(key, met.to_string(), "1 to 1048576"));
            }
        }
        if !(4096..=1 << 40).contains(&self.in_flight_bytes) {
            return Err(wrong("in_flight_bytes", self.in_flight_bytes.to_string(), "4 KiB to 1 TiB"));
        }
        let together = self.total_in_flight_bytes.unwrap_or(self.in_flight_bytes.max(TOGETHER));
        if !(self.in_flight_bytes.max(Budget::LEAST)..=1 << 40).contains(&together) {
            let allowed = "what one connection may have, or 32 MiB, to 1 TiB";
            return Err(wrong("total_in_flight_bytes", together.to_string(), allowed));
        }
        let time = |key: &str, ms: f64| match (1.0..=1e8).contains(&ms) {
            true => Ok(Nanos::from_ms(ms)),
            false => Err(wrong(key, ms.to_string(), "1 to 100000000")),
        };
        let limits = Limits {
            requests: self.requests,
            held_bytes: self.in_flight_bytes,
            handshake: time("handshake_ms", self.handshake_ms)?,
            request: time("request_ms", self.request_ms)?,
            reply: time("reply_ms", self.reply_ms)?,
            ..Limits::default()
        };
        Ok(Rules {
            limits,
            connections: self.connections,
            connections_per_address: of_address,
            idle: time("idle_ms", self.idle_ms)?,
            budget: Some(Budget::new(together)),
            ..Rules::default()
        })
    }
}

/// `[disk]`: one disk, which is one of three: `path`, `emulate` or `ram_bytes`. A disk is one of one node: what another writes to
/// it is not seen.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct DiskSpec {
    /// What exports, figures and errors call it; without it the name of its file, else disk0, disk1 and so on by its place.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) name: Option<String>,
    /// A block device or a file.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) path: Option<PathBuf>,
    /// An emulated disk in this process: a drive or a rig of one volume, shipped or a file.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) emulate: Option<String>,
    /// The file that keeps an emulated disk's data; without it they go with the process.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) data: Option<PathBuf>,
    /// How many times faster than a real one an emulated disk runs: 0.001 to 5000.
    pub(crate) speed: f64,
    /// Size of a disk in memory, whose contents go with the process.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) ram_bytes: Option<u64>,
    /// Whether it is opened to read alone.
    pub(crate) read_only: bool,
    /// Whether a block device or file is read and written through the system's page cache, and not with O_DIRECT.
    pub(crate) buffered: bool,
    /// Whether threads wait for the system in place of io_uring. They do, too, where the system refuses that.
    pub(crate) threads: bool,
    /// A map of where its tracks begin, as `headstack probe --map` writes it: what streams ask of the disk ends there, where that
    /// leaves at least a quarter of it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) map: Option<PathBuf>,
    /// What it does in the worst case: what exports promise is held against it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) ability: Option<AbilitySpec>,
    /// Its stream memory, and how streams are found and served from it.
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
            ability: None,
            streams: Config::default(),
        }
    }
}

/// `[disk.ability]`: what a disk does in the worst case.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct AbilitySpec {
    /// Bytes a second from the media where the disk is slowest.
    pub(crate) bandwidth_bytes_per_s: u64,
    /// Longest time from the end of one transfer to the beginning of another, anywhere on the disk.
    pub(crate) positioning_ms: f64,
    /// Share of the disk's time that may be promised; the rest is for all others.
    #[serde(default = "most")]
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
    /// What clients choose it by; without it the disk's name. The first is what a client gets that asks for none by name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) name: Option<String>,
    /// What clients can show people of it; without it what the disk is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) description: Option<String>,
    /// Whether it takes no writes.
    #[serde(default)]
    pub(crate) read_only: bool,
    /// Who may see and use it, each an address, a network (`10.0.0.0/8`), `unix` for all at sockets in the file system,
    /// `uid:NUMBER` for a user there, or `cert:NAME` for whom a client's certificate names; all may where it is empty.
    #[serde(default)]
    pub(crate) allow: Vec<Allow>,
    /// What each connection is promised for all streams. The disk's `ability` says how many there may be; who comes beyond is
    /// refused.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) guarantee: Option<Guarantee>,
}
