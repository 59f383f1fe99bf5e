//! Keys whose effect is not available.

use super::{FioOption, Role, row};

/// Keys without which the load would differ.
pub(super) const REFUSED: &[FioOption] = refused! {
    "trim_percentage" => "Trim what was written", ["0"], "rotating disks are modelled without trim";
    "trim_backlog" => "Trim what was written", ["0"], "rotating disks are modelled without trim";
    "zonecapacity" => "Bytes of a zone that can be written", ["0"], "a zone is written to its end";
    "job_max_open_zones" => "Zones written in part by a job", ["0"], "say `max_open_zones`";
    "ignore_zone_limits" => "More open zones than the disk allows", ["0"], "the disk would refuse the writes";
    "latency_target" => "Look for the depth that keeps this time", ["0"],
        "the depth is `iodepth`; compare several runs instead";
    "file_append" => "Begin at the end of the files", ["0"], "files have no content before the run";
    "opendir" => "All files below a folder", [], "there are no folders; name the files by `filename`";
    "lockfile" => "Lock files while they are used", ["none"], "files are not locked";
    "pre_read" => "Read all files before the job", ["0"], "say it as a job before a `stonewall`";
    "create_only" => "Lay files out and end", ["0"], "no request would be issued";
    "sync_file_range" => "Write part of the page cache out", [], "the host's page cache knows `fsync` only";
    "write_barrier" => "Make every n-th write a barrier", ["0"], "there are no barriers; say `fsync`";
    "merge_blktrace_file" => "Merge logs into one", [], "convert and merge the traces beforehand";
    "replay_redirect" => "Device that a log is replayed on", [], "say `filename`";
    "replay_scale" => "Divide a log's offsets", ["1"], "scale the trace beforehand";
    "replay_align" => "Align a log's offsets", ["0"], "scale the trace beforehand";
    "replay_skip" => "Leave operations of a log out", [], "cut the trace beforehand";
    "sprandom" => "Prepare flash by random writes", ["0"], "disks have no over-provisioning; say rw=randwrite";
    "profile" => "A built-in test", [], "say it as jobs";
};
