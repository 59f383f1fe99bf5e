//! The example jobs in `jobs/`, and the effects of the keys that fio does not have.

use crate::ours::{Timed, build, run, volumes};
use crate::real::has_fio;
use headstack_model::{Instant, Nanos, Op};
use headstack_workload::fio::JobFile;
use std::path::PathBuf;
use std::process::Command;

const MS: u64 = 1_000_000;

pub(crate) fn jobs() -> Vec<PathBuf> {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../jobs");
    let found = std::fs::read_dir(folder).expect("there are jobs");
    let mut all: Vec<PathBuf> = found.map(|entry| entry.expect("the folder can be listed").path()).collect();
    all.retain(|path| path.extension().is_some_and(|end| end == "fio"));
    all.sort();
    assert!(all.len() >= 6, "{} jobs", all.len());
    all
}

#[test]
fn every_shipped_job_builds_and_stays_on_its_volume() {
    for path in jobs() {
        let name = path.display().to_string();
        let text = std::fs::read_to_string(&path).expect("a job is text");
        let mut include = |name: &str| std::fs::read_to_string(name);
        let file =
            JobFile::parse(&text, &name, &mut include, &|_| None).unwrap_or_else(|error| panic!("{error}"));
        let mut load = file.build(&volumes(), 1).unwrap_or_else(|error| panic!("{error}"));
        let all = run(&mut load, Nanos(5 * MS), 5000);
        assert!(all.len() > 500, "{name} makes {} requests", all.len());
        // Only jobs that read a device through the kernel use the page cache of a rig's host.
        let is_direct = !text.contains("ioengine=psync");
        assert!(all.iter().all(|timed| {
            timed.issue.direct == is_direct && timed.issue.request.end().0 <= volumes()[0].sectors
        }));
    }
}

#[test]
fn fio_parses_every_shipped_job() {
    if !has_fio() {
        return;
    }
    for path in jobs() {
        let output = Command::new("fio").arg("--parse-only").arg(&path).output().expect("fio starts");
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.success() && said.is_empty(), "{}: {said}", path.display());
    }
}

fn requests(text: &str) -> Vec<Timed> {
    run(&mut build(text, 3), Nanos(MS), 20_000)
}

#[test]
fn pauses_follow_exponential_distribution() {
    let text = "[j]\nrw=randread\nbs=4k\nsize=80m\n#headstack: think_time=exponential(20ms)";
    let all = requests(text);
    let pauses: Vec<f64> =
        all.windows(2).map(|pair| (pair[1].at.0 - pair[0].at.0) as f64 / 1e6 - 1.0).collect();
    let count = pauses.len() as f64;
    let mean = pauses.iter().sum::<f64>() / count;
    assert!((mean - 20.0).abs() < 4.0 * 20.0 / count.sqrt(), "{mean} ms");
    // In an exponential distribution, a share of 1/e exceeds the mean.
    let long = pauses.iter().filter(|pause| **pause > 20.0).count() as f64 / count;
    let share = (-1.0f64).exp();
    assert!((long - share).abs() < 4.0 * (share * (1.0 - share) / count).sqrt(), "{long}");
}

#[test]
fn fixed_gaps_do_not_wait_for_completions() {
    let text = "[j]\nrw=randread\nbs=4k\nsize=40m\nioengine=libaio\niodepth=100\n#headstack: gap=100us";
    let all = requests(text);
    assert!(all.iter().enumerate().all(|(index, timed)| timed.at == Instant((index as u64 + 1) * 100_000)));
}

#[test]
fn local_and_sequential_shares_match_job() {
    let text = "[j]\nrw=randread\nbs=4k\nsize=100g\nio_size=80m\nnorandommap\n#headstack: sequential=0.2\n\
                #headstack: local=0.3,normal(0,10000)";
    let all = requests(text);
    let count = all.len() as f64 - 1.0;
    let share = |of: &dyn Fn(u64, u64) -> bool| {
        let pairs = all.windows(2).map(|pair| (pair[0].issue.request.lbn.0, pair[1].issue.request.lbn.0));
        pairs.filter(|(last, next)| of(*last, *next)).count() as f64 / count
    };
    let follow = share(&|last, next| next == last + 8);
    // A local request continues the previous one by chance, if its random distance is 8 to 15 sectors: once in about 3,000 requests.
    assert!((follow - 0.2).abs() < 4.0 * (0.16 / count).sqrt() + 1e-4, "{follow}");
    let near = share(&|last, next| next != last + 8 && next.abs_diff(last) < 40_000);
    assert!((near - 0.3).abs() < 4.0 * (0.21 / count).sqrt() + 1e-3, "{near}");
    assert!(all.iter().all(|timed| timed.issue.request.op == Op::Read));
}
