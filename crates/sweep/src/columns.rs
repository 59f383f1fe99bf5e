//! The columns of a row with figures, and where each is in the results of a run.

use crate::settings::SettingKind;
use std::collections::BTreeMap;

/// The columns with whole numbers, and their places in the object `headstack` of a run's results.
pub(crate) const COUNTS: [(&str, &str); 5] = [
    ("requests", "/requests"),
    ("read_requests", "/reads/requests"),
    ("write_requests", "/writes/requests"),
    ("flush_requests", "/flushes/requests"),
    ("outstanding_max", "/outstanding_max"),
];

/// The columns with figures, and their places in the object `headstack` of a run's results; those without a place are computed from
/// the devices.
pub(crate) const FIGURES: [(&str, &str); 36] = [
    ("simulated_s", "/simulated_s"),
    ("counted_s", "/counted_s"),
    ("iops", "/iops"),
    ("mb_s", "/bandwidth_mb_s"),
    ("mean_ms", "/response_ms/mean"),
    ("std_dev_ms", "/response_ms/std_dev"),
    ("p50_ms", "/response_ms/p50"),
    ("p90_ms", "/response_ms/p90"),
    ("p99_ms", "/response_ms/p99"),
    ("p999_ms", "/response_ms/p999"),
    ("max_ms", "/response_ms/max"),
    ("queued_ms", "/parts_ms/queued"),
    ("overhead_ms", "/parts_ms/overhead"),
    ("seek_ms", "/parts_ms/seek"),
    ("rotational_latency_ms", "/parts_ms/rotational_latency"),
    ("retries_ms", "/parts_ms/retries"),
    ("media_ms", "/parts_ms/media"),
    ("bus_ms", "/parts_ms/bus"),
    ("cache_ms", "/parts_ms/cache"),
    ("read_mean_ms", "/reads/response_ms/mean"),
    ("read_p50_ms", "/reads/response_ms/p50"),
    ("read_p99_ms", "/reads/response_ms/p99"),
    ("read_max_ms", "/reads/response_ms/max"),
    ("write_mean_ms", "/writes/response_ms/mean"),
    ("write_p50_ms", "/writes/response_ms/p50"),
    ("write_p99_ms", "/writes/response_ms/p99"),
    ("write_max_ms", "/writes/response_ms/max"),
    ("flush_mean_ms", "/flushes/response_ms/mean"),
    ("flush_p99_ms", "/flushes/response_ms/p99"),
    ("flush_max_ms", "/flushes/response_ms/max"),
    ("mean_ms_plus_minus", "/confidence/response_ms/plus_minus"),
    ("iops_plus_minus", "/confidence/iops/plus_minus"),
    ("mb_s_plus_minus", "/confidence/bandwidth_mb_s/plus_minus"),
    ("warm_up_s", "/confidence/warm_up_s"),
    ("arm_share", ""),
    ("hit_share", ""),
];

/// Columns of lists: the largest time of each bucket, and the requests in it.
pub(crate) const HISTOGRAM: [&str; 2] = ["histogram_ns", "histogram_requests"];

/// The columns that all rows of a plan have.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct RowLayout {
    /// The keys that some cell sets.
    pub(crate) settings: BTreeMap<String, SettingKind>,
    pub(crate) has_histograms: bool,
}
