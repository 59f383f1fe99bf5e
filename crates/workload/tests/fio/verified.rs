//! `verify` as a load: the writes of a job, and the reads that fio makes of them.

use crate::ours::{Access, Kind, accesses, parse};
use crate::real::{assert_same_requests, assert_same_shares, has_fio, totals};

/// Jobs without random requests. The method `null` lets fio's null engine pass.
const EXACT: [&str; 20] = [
    "rw=write\nbs=4k\nsize=64k",
    "rw=write\nbs=4k\nsize=64k\nloops=3",
    "rw=write\nbs=4k\nsize=64k\nverify_backlog=4",
    "rw=write\nbs=4k\nsize=64k\nverify_backlog=5\nverify_backlog_batch=2",
    "rw=write\nbs=4k\nsize=64k\nverify_backlog=3\nverify_backlog_batch=7\nloops=2",
    "rw=write\nbs=4k\nsize=60k\nverify_backlog=1",
    "rw=write:8k\nbs=4k\nsize=64k",
    "rw=write\nbs=4k\nsize=64k\nio_size=200k",
    "rw=write\nbs=4k\nsize=64k\nnumber_ios=10",
    "rw=write\nbs=4k\nsize=64k\nnumber_ios=10\nverify_backlog=4",
    "rw=write\nbs=4k\nsize=64k\ndo_verify=0",
    "rw=write\nbs=4k\nsize=64k\nfsync=4\nend_fsync=1",
    "rw=write\nbs=4k\nsize=64k\nverify_only",
    "rw=write\nbs=4k\nsize=64k\nverify_only\nloops=2",
    "rw=write\nbs=4k\nsize=64k\nexperimental_verify=1",
    "rw=write\nbs=4k\nsize=64k\nexperimental_verify=1\nloops=3",
    "rw=write\nbs=4k\nsize=64k\nverify_async=2\nverify_interval=512",
    "rw=read\nbs=4k\nsize=64k",
    "rw=write\nbs=4k\nsize=64k\noffset=32k\nzonemode=strided\nzonesize=8k\nzoneskip=8k",
    "rw=write:-12k\nbs=4k\nsize=64k\nnumber_ios=24\noffset=4k",
];

#[test]
fn written_requests_are_read_as_fio_reads_them() {
    if has_fio() {
        EXACT.iter().for_each(|keys| assert_same_requests(&format!("[j]\nverify=null\n{keys}")));
    }
}

#[test]
fn jobs_after_each_other_write_and_verify_as_fio_does() {
    if has_fio() {
        assert_same_requests(
            "[global]\nfilename=f\nsize=64k\nbs=8k\nverify=null\n[w]\nrw=write\ndo_verify=0\n[r]\nstonewall\nrw=read\nbs=4k",
        );
    }
}

/// Jobs whose places are drawn. Their counts and mixes must agree.
const DRAWN: [&str; 8] = [
    "rw=randwrite\nbs=4k\nsize=4m",
    "rw=randwrite\nbs=4k\nsize=4m\nnorandommap",
    "rw=randwrite\nbs=4k\nsize=4m\nloops=3",
    "rw=randrw\nbs=4k\nsize=8m",
    "rw=randrw\nbs=4k\nsize=8m\nverify_backlog=16",
    "rw=rw\nbs=4k\nsize=8m\nverify_backlog=1",
    "rw=randwrite\nbs=4k\nsize=4m\nexperimental_verify=1\nloops=4",
    "rw=randwrite\nbsrange=4k-64k\nsize=32m\nverify_backlog=8",
];

#[test]
fn drawn_jobs_verify_as_many_requests_as_fio() {
    if !has_fio() {
        return;
    }
    for keys in DRAWN {
        let text = format!("[j]\nverify=null\n{keys}");
        let (theirs, ours) = (crate::real::fio(&text).remove(0), accesses(&text, 1).remove(0));
        if !keys.contains("rw=rw")
            && !keys.contains("range")
            && !keys.contains("norandommap")
            && !keys.contains("randrw")
        {
            assert_eq!(ours.len(), theirs.len(), "{text}");
        }
        assert_same_shares(&text, (&ours, &theirs), |access| access.op);
    }
}

#[test]
fn deep_queues_verify_as_many_requests_as_fio() {
    if !has_fio() {
        return;
    }
    for keys in
        ["rw=write\nsize=1m", "rw=randwrite\nsize=1m\nloops=2", "rw=randwrite\nsize=1m\nverify_backlog=16"]
    {
        let text = format!("[j]\nioengine=null\niodepth=16\nbs=4k\nverify=null\n{keys}");
        let ours = accesses(&text, 1).remove(0);
        let count = |kind: Kind| ours.iter().filter(|access| access.op == kind).count() as u64;
        assert_eq!(vec![[count(Kind::Read), count(Kind::Write)]], totals(&text), "{text}");
    }
}

fn of_kind(all: &[Access], kind: Kind) -> Vec<(u64, u64)> {
    all.iter().filter(|access| access.op == kind).map(|access| (access.offset, access.bytes)).collect()
}

#[test]
fn random_map_makes_reads_follow_the_order_of_the_writes() {
    let all = accesses("[j]\nrw=randwrite\nbs=4k\nsize=1m\nverify=md5", 1).remove(0);
    let (written, read) = (of_kind(&all, Kind::Write), of_kind(&all, Kind::Read));
    assert_eq!(written.len(), 256);
    assert_eq!(written, read);
}

#[test]
fn places_written_twice_are_read_once_in_their_order() {
    let all = accesses("[j]\nrw=randwrite\nbs=4k\nsize=1m\nnorandommap\nverify=md5", 1).remove(0);
    let (mut written, read) = (of_kind(&all, Kind::Write), of_kind(&all, Kind::Read));
    assert_eq!(written.len(), 256);
    written.sort_unstable();
    written.dedup();
    assert!(written.len() < 200);
    assert_eq!(written, read);
}

#[test]
fn overwritten_parts_of_longer_runs_are_read_no_more() {
    // The second job of a pair of loops would write again; one pass with overlapping sizes is enough here.
    let all = accesses(
        "[j]\nrw=randwrite\nbssplit=4k/50:16k/50\nba=4k\nsize=256k\nio_size=2m\nnorandommap\nverify=crc32c",
        3,
    );
    let mut left: Vec<(u64, u64)> = Vec::new();
    let mut read = Vec::new();
    for access in &all[0] {
        match access.op {
            Kind::Write => {
                read.clear();
                left.retain(|(offset, bytes)| {
                    offset + bytes <= access.offset || access.offset + access.bytes <= *offset
                });
                left.push((access.offset, access.bytes));
            }
            _ => read.push((access.offset, access.bytes)),
        }
    }
    left.sort_unstable();
    assert!(left.len() > 10);
    assert_eq!(left, read);
}

#[test]
fn time_ends_a_job_in_the_middle_of_its_reads() {
    let text = "[j]\nioengine=libaio\nrw=write\nbs=4k\nsize=64k\nverify=md5\ntime_based\nruntime=1";
    let all = accesses(text, 1).remove(0);
    let (written, read) = (of_kind(&all, Kind::Write).len(), of_kind(&all, Kind::Read).len());
    assert_eq!(written + read, 1_000_000, "one a microsecond");
    assert!(written.abs_diff(read) <= 16, "{written} {read}");
}

#[test]
fn unknown_methods_are_rejected_with_the_nearest() {
    let error = parse("[j]\nrw=write\nverify=crc32d").expect_err("there is none").to_string();
    assert!(
        error.starts_with("test.fio:3: verify: `crc32d`, where 0, md5, ")
            && error.ends_with("did you mean `crc32`?"),
        "{error}"
    );
}
