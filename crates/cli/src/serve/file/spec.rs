//! The keys of a node file. A field here is the key in the file; its doc comment is its documentation.

use headstack_host::TlsSettings;
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
    /// Where figures are served over HTTP: `HOST:PORT`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) metrics: Option<String>,
    /// Who to go on as, by name or number, once disks and sockets are open: for a node that root starts.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) user: Option<String>,
    /// TLS for clients, within the protocol (STARTTLS). Without it everything crosses the network as it is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) tls: Option<TlsSettings>,
    /// The disks, each with a thread and a stream memory of its own.
    pub(crate) disk: Vec<DiskSpec>,
    /// What clients can choose. Without any, each disk is exported under its name.
    pub(crate) export: Vec<ExportSpec>,
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
            streams: Config::default(),
        }
    }
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
}
