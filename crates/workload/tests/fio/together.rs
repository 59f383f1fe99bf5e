//! Jobs that share, end or wait for each other, and jobs that end once their results are steady.

use crate::ours::{Timed, accesses_on, build, parse, run, volumes};
use crate::real::{has_fio, totals};
use headstack_model::Nanos;

fn counts(text: &str, service: Nanos) -> Vec<usize> {
    let mut load = build(text, 1);
    let all = run(&mut load, service, 1_000_000);
    (0..load.jobs().len()).map(|at| by_source(&all, at).len()).collect()
}

fn by_source(all: &[Timed], source: usize) -> Vec<&Timed> {
    all.iter().filter(|timed| timed.issue.source as usize == source).collect()
}

const FLOW: &str = "[global]\nbs=4k\nioengine=null\nsize=100g\nruntime=1\ntime_based\n";

#[test]
fn jobs_of_a_flow_keep_to_their_weights() {
    let found = counts(&format!("{FLOW}[a]\nflow=1\n[b]\nflow=8"), Nanos(100_000));
    assert!((found[1] as f64 / found[0] as f64 - 8.0).abs() < 0.01, "{found:?}");
    // The slow one of a group slows the others down.
    let found = counts(
        &format!("{FLOW}[a]\nflow=1\nrate_iops=100\n[b]\nflow=8\n[c]\nflow=3\nflow_id=1"),
        Nanos(10_000),
    );
    assert!(found[0].abs_diff(100) <= 1 && found[1].abs_diff(800) <= 9, "{found:?}");
    assert_eq!(found[2], 100_000, "the only one of its group");
}

#[test]
fn held_back_job_sleeps_once_its_requests_are_back() {
    let text = format!("{FLOW}iodepth=4\nflow_sleep=5000\n[a]\nflow=1\n[b]\nflow=1\nrate_iops=100");
    let found = counts(&text, Nanos(1_000_000));
    assert!(found[0].abs_diff(found[1]) <= 2 && found[1].abs_diff(100) <= 2, "{found:?}");
}

#[test]
fn flow_continues_with_those_that_remain() {
    let text = format!("{FLOW}[a]\nflow=1\nruntime=500ms\n[b]\nflow=1");
    let found = counts(&text, Nanos(1_000_000));
    assert!(found[0].abs_diff(500) <= 2 && found[1].abs_diff(1000) <= 2, "{found:?}");
}

#[test]
fn exitall_of_one_job_is_for_all_and_its_scope_is_of_the_first_that_ends() {
    let text = |scope: &str| {
        format!(
            "[global]\nbs=4k\nsize=1m\n[a]\nnumber_ios=3\nexit_what={scope}\n[b]\nexitall\n[c]\nnew_group\n[d]\nstonewall\nnumber_ios=5"
        )
    };
    let of_scope = |scope: &str| counts(&text(scope), Nanos(1_000_000));
    assert_eq!(of_scope("group"), [3, 3, 256, 5]);
    assert_eq!(of_scope("stonewall"), [3, 3, 3, 5]);
    assert_eq!(of_scope("all"), [3, 3, 3, 0]);
}

#[test]
fn job_ends_once_its_results_are_steady() {
    let job = "[j]\nioengine=null\nrw=randread\nbs=4k\nsize=1g\ntime_based\nruntime=60\n";
    let steady = |keys: &str| counts(&format!("{job}{keys}"), Nanos(1_000_000))[0];
    // 1000 requests a second from the first one on: 3 samples.
    assert_eq!(steady("ss=iops:1%\nss_dur=3"), 3000);
    assert_eq!(steady("steadystate=bw_slope:1%\nss_dur=5s\nss_ramp=2s"), 7000);
    assert_eq!(steady("ss=iops:1%"), 60_000, "without a duration it has no effect");
    // Pauses of 3 s after every 1000 requests are never steady.
    let paused = "thinktime=3s\nthinktime_blocks=1000\nss=iops:10%\nss_dur=4";
    assert!(steady(paused) > 14_000);
}

#[test]
fn group_ends_once_its_sum_is_steady() {
    let text = "[global]\nioengine=null\nrw=randread\nbs=4k\nsize=1g\ntime_based\nruntime=60\ngroup_reporting\nss=iops:1%\nss_dur=3\n[a]\nnumjobs=2";
    assert_eq!(counts(text, Nanos(1_000_000)), [3000, 3000]);
}

#[test]
fn sizes_and_offsets_are_counted_in_zones() {
    let mut disk = volumes();
    disk[0].sectors = 1 << 22;
    let text =
        "[j]\nfilename=sda\nrw=read\nbs=64k\nzonemode=strided\nzonesize=1m\nsize=8z\noffset=2z\nzoneskip=1z";
    let all = accesses_on(text, &disk, 1).remove(0);
    assert_eq!(all.len(), 128);
    assert_eq!(all[0].offset, 2 << 20);
    assert_eq!(all[16].offset, 4 << 20);
    let error =
        parse("[j]\nfilename=sda\nsize=8z").expect("it can be read").build(&disk, 1).expect_err("no zones");
    assert_eq!(
        error.to_string(),
        "test.fio:3: size: is in zones, where neither the disk nor `zonesize` has any"
    );
    let error = parse("[j]\nfilename=sda\nbs=8z").expect_err("only places are in zones").to_string();
    assert!(error.contains("bs: `8z`"), "{error}");
}

#[test]
fn job_without_a_size_fills_the_first_volume() {
    let text = "[global]\nbs=1m\nfilename=data.tmp\n[w]\nrw=write\nfill_device=1\n[r]\nstonewall\nrw=read";
    let mut disk = volumes();
    disk[0].sectors = 1 << 20;
    let all = accesses_on(text, &disk, 1);
    assert_eq!([all[0].len(), all[1].len()], [512, 512]);
}

/// What jobs of fio's own repository are about, small. Their numbers of reads and writes must be fio's.
const ESSENCE: [&str; 17] = [
    // Sequential and backwards readers of one file that keep pace.
    "[global]\nfilename=f\nbs=4k\nsize=1m\n[forward]\nrw=read\nflow=2\n[backward]\nrw=read:-8k\nflow=2\noffset=512k\nnumber_ios=64",
    // A pass over a disk in strides, with the zone mode and without.
    "[j]\nrw=read\nbs=64k\nsize=4m\nzonemode=strided\nzonesize=256k\nzonerange=512k\nzoneskip=1m",
    "[j]\nrw=read\nbs=4k\nsize=64m\nzonemode=strided\nzonesize=64k\nzonerange=1m\nzoneskip=1m",
    "[j]\nrw=read\nbs=4k\nsize=1m\nzonemode=strided\nzonesize=64k\nzoneskip=64k",
    // Writers that verify, of one and of several sizes.
    "[j]\nrw=randwrite\nbs=4k\nsize=2m\nverify=null",
    "[j]\nrw=write:112k\nbs=16k\nsize=4m\nio_size=1m\nverify=null\nverify_backlog=1\nloops=2",
    "[j]\nrw=write\nbs=4k\nsize=1m\nverify=null\nverify_backlog=32",
    "[a]\nrw=write\nbs=512\nsize=64k\ndo_verify=0\nverify=null\n[b]\nstonewall\nrw=write\nbs=64k\nsize=1m\nverify=null\nverify_interval=512",
    "[j]\nrw=randwrite\nbs=4k\nsize=1m\nloops=8\nverify=null\nexperimental_verify=1",
    "[j]\nrw=write\nbs=4k\nsize=128k\nverify=null\nexperimental_verify=1",
    // A job that the depth, clones and overlaps must not change.
    "[j]\nsize=1m\niodepth=16\nserialize_overlap=1\nnumjobs=3\nloops=4",
    "[j]\nrw=randread\nsize=1m\nnorandommap\nrandom_generator=lfsr\nwrite_bw_log=x\nlog_offset=1\nper_job_logs=0",
    "[j]\nrw=randread\nsize=20000\nbsrange=1k-1k",
    "[j]\nrw=read:512k\nbs=64k\nsize=8m\nnorandommap",
    // Jobs after each other.
    "[global]\nfilename=f\nfilesize=1m\nthreads=1\ngroup_reporting\n[w]\nrw=write\nbs=128k\nnumjobs=2\n[r]\nnew_group\nwait_for=w\nrw=randread\nbs=4k\nnumjobs=2",
    "[j]\nrw=write\nbs=512\nnumber_ios=20\nsize=1m\n[k]\nstonewall\nrw=write\nbs=5120\nnumber_ios=2\nsize=1m",
    "[j]\nrw=randwrite\nbs=4k\nsize=1m\nrandom_distribution=zoned:50/5:30/15:20/80\nblockalign=4k\nnorandommap",
];

#[test]
fn jobs_like_those_of_fio_make_as_many_requests() {
    if !has_fio() {
        return;
    }
    for text in ESSENCE {
        let text = format!("[global]\nioengine=null\n{text}");
        let clones = crate::ours::accesses(&text, 1);
        let count = |clone: &[crate::ours::Access], kind| {
            clone.iter().filter(|access| access.op == kind).count() as u64
        };
        use crate::ours::Kind::{Read, Write};
        let mut ours: Vec<[u64; 2]> =
            clones.iter().map(|clone| [count(clone, Read), count(clone, Write)]).collect();
        if text.contains("group_reporting") {
            ours = ours.chunks(2).map(|pair| [pair[0][0] + pair[1][0], pair[0][1] + pair[1][1]]).collect();
        }
        assert_eq!(ours, totals(&text), "{text}");
    }
}
