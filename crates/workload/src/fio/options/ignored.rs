//! Keys that control fio itself, and those of engines only.

use super::{FioOption, Role, row};

/// Accepted, listed, and without effect.
pub(super) const IGNORED: &[FioOption] = ignored! {
    "thread" or "threads" => "Threads instead of processes";
    "openfiles" => "Files that are open at a time";
    "fallocate" => "How files get their blocks";
    "write_hint" => "Advice to the kernel";
    "invalidate" => "Drop what the page cache holds before the job";
    "overwrite" => "Lay files out first";
    "create_serialize" => "Lay files out one after the other";
    "create_fsync" => "Sync files that were laid out";
    "create_on_open" => "Lay files out when they are opened";
    "allow_file_create" => "Whether files may be laid out";
    "allow_mounted_write" => "Whether a mounted device may be written";
    "unlink" => "Remove the files afterwards";
    "unlink_each_loop" => "Remove the files after each pass";
    "unique_filename" => "Names of files for clients over a network";
    "lockmem" => "Memory to pin";
    "mem" or "iomem" => "Kind of the buffers' memory";
    "mem_align" or "iomem_align" => "Alignment of the buffers";
    "hugepage-size" => "Size of huge pages";
    "nice" => "Priority for the processor";
    "prio" => "Level within the priority class";
    "cmdprio" => "Level within the priority class of `cmdprio_percentage`";
    "cpumask", "cpus_allowed", "cpus_allowed_policy", "numa_cpu_nodes" => "Processors to run on";
    "numa_mem_policy" => "Memory to use";
    "cgroup_weight" => "Weight of the control group";
    "cgroup_nodelete" => "Keep the control group";
    "uid" => "User to run as";
    "gid" => "Group to run as";
    "exec_prerun" => "Command to run before";
    "exec_postrun" => "Command to run afterwards";
    "ioscheduler" => "The kernel's elevator; here it is the rig's";
    "clocksource" => "Clock to read";
    "gtod_reduce" => "Read the clock seldom";
    "gtod_cpu" => "Processor that reads the clock";
    "disable_lat", "disable_clat", "disable_slat" => "Leave times out";
    "disable_bw_measurement" or "disable_bw" => "Leave the bandwidth out";
    "stats" => "Collect results";
    "disk_util" => "Report the kernel's counts";
    "clat_percentiles", "lat_percentiles", "slat_percentiles", "percentile_list", "significant_figures",
        "unified_rw_reporting", "block_error_percentiles", "unit_base" => "What to report";
    "per_job_logs", "write_bw_log", "write_lat_log", "write_iops_log", "write_hist_log", "write_iolog",
        "bwavgtime", "iopsavgtime", "log_entries", "log_avg_msec", "log_hist_msec", "log_hist_coarseness",
        "log_max_value", "log_offset", "log_prio", "log_compression", "log_compression_cpus",
        "log_store_compressed", "log_unix_epoch", "log_alternate_epoch",
        "log_alternate_epoch_clock_id" => "Logs to write";
    "zero_buffers", "refill_buffers", "scramble_buffers", "buffer_pattern", "buffer_compress_percentage",
        "buffer_compress_chunk", "dedupe_percentage", "dedupe_mode", "dedupe_working_set_percentage",
        "dedupe_global" => "What is written";
    "atomic" => "Writes whole or not at all";
    "random_generator" => "fio's own random numbers";
    "allrandrepeat" => "Repeat all random numbers; here they always repeat";
    "softrandommap" => "Continue without a random map where memory is short";
    "serialize_overlap" => "Keep overlapping requests apart";
    "iodepth_batch" or "iodepth_batch_submit" => "Requests handed to the kernel at a time";
    "iodepth_batch_complete_max" => "Completions taken from the kernel at a time";
    "rate_min" or "ratemin", "rate_iops_min" => "Give up below this rate";
    "rate_cycle" or "ratecycle" => "Window of those two";
    "max_latency" => "Give up above this time";
    "continue_on_error", "ignore_error", "error_dump", "exitall_on_error" => "What to do about errors";
    "read_iolog_chunked" => "Read a log in pieces, which is always done here";
    "verify_interval", "verify_offset", "verify_pattern", "verify_fatal", "verify_dump",
        "verify_async", "verify_async_cpus", "verifysort", "verifysort_nr",
        "verify_header_seed", "verify_write_sequence",
        "verify_state_load", "verify_state_save", "trim_verify_zero" => "How `verify` compares data";
    "trim_backlog_batch" => "Part of `trim_backlog`";
    "latency_window", "latency_percentile", "latency_run" => "Part of `latency_target`";
    "flow_watermark", "rwmixcycle", "percentage_sequential" => "Of earlier versions of fio";
    "spr_op", "spr_num_regions", "spr_cs" => "Part of `sprandom`";
    "merge_blktrace_scalars", "merge_blktrace_iters" => "Part of `merge_blktrace_file`";
    "fixedbufs", "registerfiles", "sqthread_poll", "sqthread_poll_cpu", "nonvectored", "uncached",
        "force_async", "nowait", "hipri", "hipri_percentage", "userspace_reap", "readfua", "writefua",
        "cmd_type", "md_per_io_size", "pi_act", "pi_chk", "apptag", "apptag_mask", "write_mode",
        "verify_mode", "fdp", "fdp_pli", "fdp_pli_select", "plids", "plid_select", "dataplacement", "dp_scheme",
        "sg_write_mode", "stream_id", "skip_bad", "thp", "gpu_dev_id", "gpu_dev_ids", "cuda_io", "clustername",
        "clientname", "rbdname", "pool", "busy_poll", "touch_objects", "conf", "volume", "brick",
        "single_instance" or "single-instance", "initiator", "xnvme_be", "xnvme_mem", "xnvme_async", "xnvme_sync",
        "xnvme_admin", "xnvme_dev_nsid", "xnvme_dev_subnqn", "xnvme_iovec", "libblkio_driver", "libblkio_path",
        "libblkio_pre_connect_props", "libblkio_num_entries", "libblkio_queue_size",
        "libblkio_pre_start_props", "libblkio_vectored", "libblkio_write_zeroes_on_trim",
        "libblkio_wait_mode", "libblkio_force_enable_completion_eventfd", "no_completion_thread",
        "namenode", "hdfsdirectory", "hdfs_use_direct", "chunk_size" or "chunck_size", "nfs_url" => "Of an engine";
    "hostname", "port", "bindname", "interface", "ttl", "nodelay", "protocol" or "proto", "listen", "pingpong",
        "window_size", "mss", "verb", "serverip", "direct_write_to_pmem", "busy_wait_polling", "http_host",
        "http_user", "http_pass", "http_mode", "http_verbose", "https", "http_s3_key", "http_s3_keyid",
        "http_s3_region", "http_s3_security_token", "http_s3_sse_customer_key",
        "http_s3_sse_customer_algorithm", "http_s3_storage_class", "http_swift_auth_token",
        "http_object_mode" => "Of an engine for a network";
    "program", "arguments", "grace_time", "std_redirect", "cpuload", "cpumode", "cpuchunks", "exit_on_io_done",
        "stat_type", "donorname", "inplace", "cont", "object_class", "svcl" => "Of an engine that makes no disk requests";
    "thinkcycles", "xlat_percentiles", "log_window_value", "log_issue_time" => "Times and logs of fio";
};
