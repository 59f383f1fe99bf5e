//! Runs loads without a disk: every request completes at once, or after a given time.

use headstack_model::SpecError;
use headstack_model::{Instant, Nanos, Op};
use headstack_workload::fio::{FioLoad, JobFile};
use headstack_workload::{Issue, Load, Poll, VolumeInfo};
use std::collections::VecDeque;
use std::io;

/// A request, with its offset and length in bytes of its file.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Access {
    pub(crate) file: String,
    pub(crate) op: Kind,
    pub(crate) offset: u64,
    pub(crate) bytes: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Kind {
    Read,
    Write,
    Sync,
}

pub(crate) const SECTOR: u32 = 512;

/// The volume of a rig: one disk of 1 TiB.
pub(crate) fn volumes() -> Vec<VolumeInfo> {
    vec![VolumeInfo { name: "sda".to_string(), sectors: 1 << 31, sector_bytes: SECTOR, zones: None }]
}

pub(crate) fn parse(text: &str) -> Result<JobFile, SpecError> {
    let mut nothing = |_: &str| Err(io::Error::from(io::ErrorKind::NotFound));
    JobFile::parse(text, "test.fio", &mut nothing, &|_| None)
}

pub(crate) fn build(text: &str, seed: u64) -> FioLoad {
    let built = parse(text).and_then(|file| file.build(&volumes(), seed));
    built.unwrap_or_else(|error| panic!("{error}\n{text}"))
}

/// A request with the time at which it was issued.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Timed {
    pub(crate) at: Instant,
    pub(crate) issue: Issue,
}

/// The first `most` requests of a load. Each takes `service`, and outstanding requests are served concurrently.
pub(crate) fn run(load: &mut FioLoad, service: Nanos, most: usize) -> Vec<Timed> {
    let mut all = Vec::new();
    let mut out: VecDeque<(Instant, u64)> = VecDeque::new();
    let mut now = Instant::ZERO;
    while all.len() < most {
        let wake = match load.poll(now) {
            Poll::Issue(issue) => {
                out.push_back((now + service, issue.id));
                all.push(Timed { at: now, issue });
                continue;
            }
            Poll::Done => return all,
            Poll::Later(at) => at,
            Poll::Compute { .. } => unreachable!("no program computes"),
            Poll::Waiting => Instant::MAX,
        };
        let back = out.front().map_or(Instant::MAX, |(at, _)| *at);
        now = back.min(wake);
        assert!(now < Instant::MAX, "the load waits for nothing");
        while let Some((at, id)) = out.front().copied()
            && at <= now
        {
            out.pop_front();
            load.handle_completion(now, id);
        }
    }
    all
}

/// The accesses of each clone, in the form in which fio logs them.
pub(crate) fn accesses(text: &str, seed: u64) -> Vec<Vec<Access>> {
    accesses_on(text, &volumes(), seed)
}

/// Like [`accesses`], on these volumes.
pub(crate) fn accesses_on(text: &str, volumes: &[VolumeInfo], seed: u64) -> Vec<Vec<Access>> {
    let built = parse(text).and_then(|file| file.build(volumes, seed));
    let mut load = built.unwrap_or_else(|error| panic!("{error}\n{text}"));
    let mut clones = vec![Vec::new(); load.jobs().len()];
    for Timed { issue, .. } in run(&mut load, Nanos(1000), 5_000_000) {
        let first = issue.request.lbn.0 * u64::from(SECTOR);
        let inside = |file: &&headstack_workload::fio::FioFile| {
            (file.first_byte..file.first_byte + file.bytes).contains(&first)
        };
        let file = load.files().iter().find(inside).expect("a request lies in a file");
        let op = match issue.request.op {
            Op::Read => Kind::Read,
            Op::Write => Kind::Write,
            Op::Flush => Kind::Sync,
        };
        let (file, base) = (file.name.clone(), file.first_byte);
        let bytes = u64::from(issue.request.sectors) * u64::from(SECTOR);
        let offset = if op == Kind::Sync { 0 } else { first - base };
        clones[issue.source as usize].push(Access { file, op, offset, bytes });
    }
    clones
}
