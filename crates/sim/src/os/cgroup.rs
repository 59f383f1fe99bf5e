//! `[[host.cgroup]]`: control groups of processes, and the limits of their requests.

use super::host_error::HostError;
use super::throttle::ThrottleRates;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A control group, which a fio job joins with `cgroup`. Its limits hold for each volume, below the page cache (Linux: `io.max` of the
/// group). Data that a page cache writes later belong to no group.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CgroupSpec {
    /// Its name.
    pub name: String,
    /// Bytes that it may read a second. Default: no limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rbps: Option<u64>,
    /// Bytes that it may write a second. Default: no limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wbps: Option<u64>,
    /// Reads that it may send a second. Default: no limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub riops: Option<u64>,
    /// Writes that it may send a second. Default: no limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
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

/// Upper bounds of bytes and of requests a second, which no disk reaches.
const BYTES_MAX: u64 = 1_000_000_000_000;
const REQUESTS_MAX: u64 = 1_000_000_000;

/// Checks the groups of a host.
pub(super) fn check(groups: &[CgroupSpec]) -> Result<(), HostError> {
    for (place, group) in groups.iter().enumerate() {
        let refused =
            |key: &str, message: String| Err(HostError::new(&format!("cgroup[{place}].{key}"), message));
        if group.name.is_empty() {
            return refused("name", "is empty".to_string());
        }
        if groups[..place].iter().any(|before| before.name == group.name) {
            return refused("name", format!("another group is called `{}`", group.name));
        }
        let CgroupSpec { rbps, wbps, riops, wiops, .. } = *group;
        let bytes = [("rbps", rbps, BYTES_MAX), ("wbps", wbps, BYTES_MAX)];
        let requests = [("riops", riops, REQUESTS_MAX), ("wiops", wiops, REQUESTS_MAX)];
        for (key, limit, most) in bytes.into_iter().chain(requests) {
            if let Some(limit) = limit.filter(|limit| !(1..=most).contains(limit)) {
                return refused(
                    key,
                    format!("{limit} is outside 1 to {most}; without the key there is no limit"),
                );
            }
        }
    }
    Ok(())
}
