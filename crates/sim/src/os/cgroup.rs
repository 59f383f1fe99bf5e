//! `[[host.cgroup]]`: control groups of processes, and the limits of their requests.

use super::host_fault;
use super::throttle::ThrottleRates;
use headstack_model::spec::Fault;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A control group, which a fio job joins with `cgroup`. Its limits hold for each volume, below the page cache (Linux: `io.max` of the
/// group). Data that a page cache writes later belong to no group.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CgroupSpec {
    /// Its name.
    pub name: String,
    /// Largest rate of its reads. Default: no limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 1_000_000_000_000_u64), extend("x-unit" = "bytes/s"))]
    pub rbps: Option<u64>,
    /// Largest rate of its writes. Default: no limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 1_000_000_000_000_u64), extend("x-unit" = "bytes/s"))]
    pub wbps: Option<u64>,
    /// Largest number of reads that it sends. Default: no limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 1_000_000_000), extend("x-unit" = "requests/s"))]
    pub riops: Option<u64>,
    /// Largest number of writes that it sends. Default: no limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 1_000_000_000), extend("x-unit" = "requests/s"))]
    pub wiops: Option<u64>,
}

impl CgroupSpec {
    /// The limits of its reads.
    pub(crate) fn of_reads(&self) -> ThrottleRates {
        ThrottleRates { bytes: self.rbps, requests: self.riops }
    }

    /// The limits of its writes.
    pub(crate) fn of_writes(&self) -> ThrottleRates {
        ThrottleRates { bytes: self.wbps, requests: self.wiops }
    }
}

/// Checks the groups of a host.
pub(super) fn check(groups: &[CgroupSpec]) -> Result<(), Fault> {
    for (place, group) in groups.iter().enumerate() {
        let refused =
            |key: &str, message: String| Err(host_fault(&format!("cgroup[{place}].{key}"), message));
        if group.name.is_empty() {
            return refused("name", "is empty".to_string());
        }
        if groups[..place].iter().any(|before| before.name == group.name) {
            return refused("name", format!("another group is called `{}`", group.name));
        }
    }
    Ok(())
}
