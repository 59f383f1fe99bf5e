//! `[host.processor]` and `[host.clients]` of a rig: what work costs the host, and how far away its clients are.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// `[host.processor]`: the processor time of the host's work. All work of a rig waits for the same lanes, in order of arrival; an
/// interrupt goes first. Times that are not given are 0, but for the defaults named here.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct ProcessorSpec {
    /// Number of lanes (processors, or cores) that work side by side.
    #[schemars(range(min = 1, max = 1024))]
    pub lanes: u32,
    /// Time for each request of the load, as a system call.
    #[schemars(range(min = 0.0, max = 1e6))]
    pub system_call_us: f64,
    /// Time for 1,024 bytes that the page cache copies to or from a program. Default: a quarter of
    /// `host.page_cache.copy_us_per_page`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0.0, max = 1e6))]
    pub copy_us_per_kib: Option<f64>,
    /// Time to submit a command to a drive. Default: 0; with `[host.interface]` 10 (assumption).
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0.0, max = 1e6))]
    pub submit_us: Option<f64>,
    /// Time for each interrupt. Default: 0; with `[host.interface]` 5 (assumption).
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0.0, max = 1e6))]
    pub interrupt_us: Option<f64>,
    /// Time to read a word of two bytes with programmed I/O (`host.interface.kind`), in addition to the cycle of its mode.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0.0, max = 1e6))]
    pub word_read_us: Option<f64>,
    /// Time to write a word of two bytes with programmed I/O (`host.interface.kind`), in addition to the cycle of its mode.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0.0, max = 1e6))]
    pub word_write_us: Option<f64>,
    /// Time of a program's own work for each byte that it reads or writes, before it issues the request.
    #[schemars(range(min = 0.0, max = 1e6))]
    pub program_us_per_byte: f64,
    /// Time in which a storage node receives and answers a client's request.
    #[schemars(range(min = 0.0, max = 1e6))]
    pub client_request_us: f64,
    /// Time in which a storage node sends or receives 1,024 bytes of a client's data.
    #[schemars(range(min = 0.0, max = 1e6))]
    pub client_us_per_kib: f64,
}

impl Default for ProcessorSpec {
    fn default() -> ProcessorSpec {
        ProcessorSpec {
            lanes: 1,
            system_call_us: 0.0,
            copy_us_per_kib: None,
            submit_us: None,
            interrupt_us: None,
            word_read_us: None,
            word_write_us: None,
            program_us_per_byte: 0.0,
            client_request_us: 0.0,
            client_us_per_kib: 0.0,
        }
    }
}

/// `[host.clients]`: the network between the host and the clients that issue the load's requests. Without it, they are programs
/// on the host.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct ClientsSpec {
    /// Time of an empty message to the client and back. Half of it passes before a request arrives and half after its answer.
    #[schemars(range(min = 0.0, max = 1e6))]
    pub round_trip_us: f64,
}
