//! Properties for any job file: it is parsed or refused, and the load stays on its volumes and ends.

use headstack_model::{Instant, Nanos, Op};
use headstack_workload::fio::JobFile;
use headstack_workload::{Load, Poll, VolumeInfo};
use proptest::prelude::*;

/// Lines from which random job files are composed.
const LINES: [&str; 61] = [
    "[a]",
    "[b]",
    "[global]",
    "rw=read",
    "rw=write",
    "rw=randread",
    "rw=randrw",
    "rw=rw",
    "rw=randread:3",
    "rw=write:4k",
    "rw=read:-8k",
    "rw_sequencer=identical",
    "bs=4k",
    "bs=512",
    "bs=3k,7k",
    "bsrange=1k-9k",
    "bs_unaligned",
    "bssplit=4k/50:8k/",
    "bssplit=512/1:1m/99",
    "ba=512",
    "bs_is_seq_rand=1",
    "size=64k",
    "size=1m",
    "size=50%",
    "size=1000",
    "io_size=300k",
    "io_size=50%",
    "filesize=4k-64k",
    "offset=12k",
    "offset=30%",
    "offset_increment=10%",
    "offset_increment=5k",
    "nrfiles=3",
    "filename=/dev/sda",
    "filename=sdb:x",
    "file_service_type=random:2",
    "file_service_type=sequential",
    "numjobs=3",
    "ioengine=libaio",
    "iodepth=7",
    "iodepth_low=2",
    "loops=2",
    "number_ios=20",
    "runtime=1",
    "time_based",
    "ramp_time=1",
    "startdelay=0-1",
    "thinktime=3ms",
    "thinktime_blocks=4",
    "thinktime_iotime=1s",
    "rate_iops=50",
    "rate=,1m",
    "rate_process=poisson",
    "fsync=3",
    "end_fsync=1",
    "norandommap",
    "percentage_random=40",
    "random_distribution=zipf:1.1",
    "random_distribution=zoned:50/5:50/95",
    "stonewall",
    "#headstack: local=0.5,normal(0,100)",
];

/// Runs a load for up to 3,000 polls. Checks that each request is on its volume.
fn turn(load: &mut dyn Load, volumes: &[VolumeInfo]) -> Result<(), TestCaseError> {
    let (mut now, mut out) = (Instant::ZERO, Vec::new());
    for _ in 0..3000 {
        match load.poll(now) {
            Poll::Issue(issue) => {
                let request = issue.request;
                prop_assert!(request.end().0 <= volumes[issue.device as usize].sectors, "{issue:?}");
                prop_assert!((request.op == Op::Flush) == (request.sectors == 0), "{issue:?}");
                out.push(issue.id);
            }
            Poll::Later(at) => {
                prop_assert!(at > now, "it wants to be asked again at once");
                now = at;
            }
            Poll::Done => {
                prop_assert!(out.is_empty(), "it is done before its requests are");
                return Ok(());
            }
            Poll::Compute { .. } => unreachable!("no program computes"),
            Poll::Waiting => {
                prop_assert!(!out.is_empty(), "it waits for nothing");
                now += Nanos(1_000_000);
                out.drain(..).for_each(|id| load.handle_completion(now, id));
            }
        }
        if out.len() > 4 {
            load.handle_completion(now, out.remove(0));
        }
    }
    Ok(())
}

fn read(text: &str) -> Option<JobFile> {
    let mut include = |_: &str| Ok("bs=2k\n".to_string());
    JobFile::parse(text, "p.fio", &mut include, &|_| None).ok()
}

fn volumes() -> Vec<VolumeInfo> {
    let volume = |name: &str, sector_bytes| VolumeInfo {
        name: name.to_string(),
        sectors: 50_000,
        sector_bytes,
        zones: None,
    };
    vec![volume("sda", 512), volume("sdb", 4096)]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(600))]

    #[test]
    fn every_job_stays_on_its_volumes(lines in prop::collection::vec(prop::sample::select(&LINES[..]), 1..14), seed: u64) {
        let text = format!("[j]\n{}\n", lines.join("\n"));
        if let Some(file) = read(&text)
            && let Ok(mut load) = file.build(&volumes(), seed)
        {
            turn(&mut load, &volumes())?;
        }
    }

    #[test]
    fn every_text_is_parsed_or_rejected_in_one_line(text in "(\\[[a-z]{0,3}\\]?|[a-z_]{1,12}=?[0-9a-z:,/%.()-]{0,12}|include .?|#headstack: ?[a-z_=0-9,()]*)(\n|;|#| ){0,2}", more in "\\PC{0,40}") {
        let mut include = |_: &str| Ok(more.clone());
        if let Err(error) = JobFile::parse(&format!("[j]\n{text}\n{more}"), "p.fio", &mut include, &|_| None) {
            let line = error.to_string();
            prop_assert!(!line.contains('\n'), "{line}");
            prop_assert!(line.starts_with("p.fio:") || error.origin != "p.fio", "{line}");
        }
    }
}
