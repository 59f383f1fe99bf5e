//! Cases that once broke a relation.

use crate::campaign::Campaign;
use crate::judge_text;

/// The head of a case, `RELATION SEED DRIVE --set KEY=VALUE`, and its job.
type Kept = (&'static str, &'static str);

/// Each is the smallest form of a load on which the simulator of November 2026 gave what no disk does.
const KEPT: &[Kept] = &[
    // Queued reads in order lost a revolution for each round of commands.
    (
        "depth_slows_no_stream 1 exos-x18",
        "runtime=1\nramp_time=1\ntime_based\n[p]\nrw=read\nbs=4k\niodepth=2\n",
    ),
    (
        "depth_slows_no_stream 1 wd40efax",
        "runtime=1\nramp_time=1\ntime_based\n[p]\nrw=read\nbs=16k\niodepth=4\n",
    ),
    (
        "depth_slows_no_stream 1 st2000dm006",
        "runtime=2\nramp_time=1\ntime_based\n[p]\nrw=read\nbs=128k\niodepth=2\n",
    ),
    (
        "stream_runs_at_the_medias_rate 1 ultrastar-hc570",
        "runtime=2\nramp_time=1\ntime_based\n[p]\nrw=read\nbs=64k\niodepth=4\n",
    ),
    (
        "streams_together_keep_a_share_of_one 1 exos-x18",
        "runtime=5\nramp_time=1\ntime_based\n[a]\nrw=read\nbs=64k\n[b]\nrw=read\nbs=64k\noffset=4000g\n[c]\nrw=read\nbs=64k\n\
         offset=8000g\n[d]\nrw=read\nbs=64k\noffset=12000g\n",
    ),
    // Commands in order took 0.1 ms each of the media's time.
    (
        "small_queued_blocks_reach_a_share_of_the_media 1 ultrastar-hc620",
        "runtime=1\nramp_time=1\ntime_based\n[w]\nrw=write\nbs=4k\niodepth=16\nsize=100g\n",
    ),
    // Thousands of cached writes were ordered at once.
    (
        "destaging_orders_no_more_than_its_descriptors 1 samsung-hd103sj",
        "runtime=20\nramp_time=5\ntime_based\n[w]\nrw=randwrite\nbs=4k\nsize=1g\nnorandommap\n",
    ),
    // A synchronous write went to the log on the media, with the volatile cache on as with it off.
    (
        "synchronous_write_is_a_write_and_a_flush 1 ultrastar-7k6000",
        "runtime=15\nramp_time=1\ntime_based\n[w]\nrw=randwrite\nbs=4k\nsync=sync\n",
    ),
    (
        "synchronous_write_without_cache_is_a_write 1 ultrastar-7k8 --set drive.cache.write_cache=none",
        "runtime=15\nramp_time=1\ntime_based\n[w]\nrw=randwrite\nbs=4k\nsync=sync\n",
    ),
    // A flush drained the queue of a drive without a cache.
    (
        "flush_of_no_cache_costs_nothing 1 toshiba-mg06 --set drive.cache.write_cache=none",
        "runtime=15\nramp_time=1\ntime_based\n[wal]\nrw=write\nbs=4k\nfdatasync=1\nsize=4g\n[data]\nrw=randwrite\nbs=64k\n\
         iodepth=8\n",
    ),
    // The last flush of a job took no time of its figures.
    ("final_flush_counts 1 exos-x16", "[w]\nrw=write\nbs=1m\nsize=1g\nend_fsync=1\n"),
    // A job with zones ended early.
    (
        "job_transfers_its_size 1 wd800jd",
        "[p]\nrw=read\nbs=4k\nsize=64m\nzonemode=strided\nzonesize=64k\nzonerange=1m\nzoneskip=1m\n",
    ),
    // The next window of a file's read-ahead came while one was at the drive.
    (
        "file_is_read_at_the_medias_rate 1 st2000dm006 --set host.page_cache.memory_mb=512 --set host.queue.elevator=deadline",
        "runtime=3\nramp_time=1\ntime_based\n[cp]\nrw=read\nbs=128k\ndirect=0\nioengine=psync\nfadvise_hint=0\n",
    ),
    // Writes waited for room in the cache for the whole run.
    (
        "no_request_starves 1 exos-x16",
        "runtime=20\nramp_time=1\ntime_based\n[w]\nrw=randwrite\nbs=4k\niodepth=32\n[r]\nrw=randread\nbs=4k\n",
    ),
    (
        "random_rate_is_that_of_the_sheet 1 exos-x18",
        "runtime=60\nramp_time=20\ntime_based\n[w]\nrw=randwrite\nbs=4k\niodepth=16\nnorandommap\n",
    ),
    // A destage of neighbours took the time of one that moves the arm.
    (
        "destages_in_a_region_cost_no_more_than_its_writes 1 st2000dm006",
        "runtime=20\nramp_time=5\ntime_based\n[w]\nrw=randwrite\nbs=64k\niodepth=64\nsize=3g\n",
    ),
    (
        "depth_slows_no_stream 1 st2000dm006",
        "runtime=3\nramp_time=1\ntime_based\n[w]\nrw=write\nbs=64k\niodepth=16\n",
    ),
    // A stream of small writes went to the log although its own place takes them in time.
    (
        "larger_block_slows_no_stream 1 exos-2x18-half --set drive.cache.write_cache=none",
        "runtime=1\nramp_time=1\ntime_based\n[w]\nrw=write\nbs=4k\niodepth=15\n",
    ),
    // A part of a physical sector went to its own place, where it is read first, and not to the log.
    (
        "depth_slows_no_stream 1 ultrastar-hc570 --set drive.cache.write_cache=none",
        "runtime=1\nramp_time=1\ntime_based\n[w]\nrw=write\nbs=1k\niodepth=2\n",
    ),
    // Writes that waited for room in the cache were received in any order, and lay there as hundreds of runs.
    (
        "larger_block_slows_no_stream 1 ultrastar-hc620",
        "runtime=1\nramp_time=1\ntime_based\n[w]\nrw=write\nbs=8k\niodepth=8\n",
    ),
    // The elevator merged what a program submitted one by one while the drive had room, into commands beyond what it prefers.
    (
        "depth_slows_no_stream 1 exos-x16 --set host.queue.elevator=mq-deadline --set drive.cache.write_cache=none",
        "runtime=1\nramp_time=1\ntime_based\n[w]\nrw=write\nbs=16k\niodepth=8\n",
    ),
    // Two blocks of 512 KiB fit one command, and five of 256 KiB.
    (
        "larger_block_slows_no_stream 1 wd2500jb --set host.queue.elevator=mq-deadline --set drive.cache.write_cache=none",
        "runtime=3\nramp_time=1\ntime_based\n[w]\nrw=write\nbs=256k\niodepth=16\n",
    ),
    // Each record of a shingled disk's log waited for a choice, and lost a revolution, unless a read came between.
    (
        "job_alone_is_not_slower 1 wd40efax --set drive.cache.write_cache=none",
        "runtime=20\nramp_time=2\ntime_based\n[a]\nrw=randwrite\niodepth=8\n[b]\nrw=read\noffset=1972901m\n",
    ),
    // A write counted as in time for its own place by its overhead, although its data missed its sectors.
    (
        "depth_slows_no_stream 1 ultrastar-hc570 --set drive.cache.write_cache=none",
        "runtime=1\nramp_time=1\ntime_based\n[w]\nrw=write\nbs=8k\niodepth=2\noffset=10117457m\n",
    ),
    // The data of two commands arrived in another order than they, and were written so: a revolution lost for each pair.
    (
        "depth_slows_no_stream 1 atlas-10k-v-300",
        "runtime=5\nramp_time=5\ntime_based\n[w]\nrw=write\nbs=32k\niodepth=2\noffset=129716m\n",
    ),
    (
        "depth_slows_no_stream 1 wde18300",
        "runtime=1\nramp_time=1\ntime_based\n[p]\nrw=read\nbs=4k\niodepth=2\n",
    ),
    // A lone queued stream left its place after each command, and a write to the log waited for a choice.
    (
        "depth_slows_no_stream 1 atlas-10k-ii",
        "runtime=1\nramp_time=1\ntime_based\n[p]\nrw=read\nbs=4k\niodepth=2\n",
    ),
    (
        "depth_slows_no_stream 1 exos-x16 --set drive.cache.write_cache=none",
        "runtime=1\nramp_time=1\ntime_based\n[w]\nrw=write\nbs=4k\niodepth=2\n",
    ),
];

/// Judges all kept cases.
pub(crate) fn judge_all(campaign: &mut Campaign) {
    KEPT.iter().for_each(|(head, job)| judge_text(campaign, head, job));
}
