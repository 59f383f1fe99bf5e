//! A search for what cannot be: random loads on all shipped drives, judged by relations that hold on any disk.
//!
//! A relation (`relations/`) draws a case for a drive (one to four fio jobs, write cache on or off, an elevator or none) and judges it by
//! other runs: more depth slows no stream, a write cache halves no rate, no request starves. A case that breaks one is made smaller and
//! printed as a fio job, and the search continues; [`kept`] has those that were mended. `make test` runs the kept cases and one drawn case
//! of each relation, `make search` draws for an hour.

#![allow(clippy::disallowed_methods, reason = "a search has a seed of its day, and an end by the clock")]

mod bench;
mod campaign;
mod draw;
mod job_text;
mod kept;
mod relations;
mod shrink;

use bench::Machine;
use campaign::Campaign;
use job_text::JobText;
use relations::Case;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// Drawn cases of each relation in the short form.
const SHORT_ROUNDS: u64 = 1;

/// Judgements that a failure may take to become smaller, in the short and in the long form.
const SHRINKING: (u32, u32) = (8, 60);

/// Time between two lines about progress.
const PROGRESS: Duration = Duration::from_secs(30);

fn number(variable: &str) -> Option<u64> {
    let text = std::env::var(variable).ok()?;
    Some(text.parse().unwrap_or_else(|_| panic!("{variable}: {text} is not a number")))
}

fn text(variable: &str) -> String {
    std::env::var(variable).unwrap_or_default()
}

fn seconds_since_1970() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs())
}

/// `HEADSTACK_SEARCH_SEED`, or else a number that changes after these seconds.
fn seed(changes_after_s: u64) -> u64 {
    number("HEADSTACK_SEARCH_SEED").unwrap_or_else(|| seconds_since_1970() / changes_after_s)
}

/// The kept cases, and some drawn ones of each relation, the same in each run unless `HEADSTACK_SEARCH_SEED` is set.
#[test]
fn no_relation_is_broken_by_kept_and_some_drawn_loads() {
    let seed = number("HEADSTACK_SEARCH_SEED").unwrap_or(1);
    println!("HEADSTACK_SEARCH_SEED={seed}");
    let mut campaign = Campaign::new(seed, SHRINKING.0, &text("HEADSTACK_SEARCH_RELATION"));
    kept::judge_all(&mut campaign);
    (0..SHORT_ROUNDS * campaign.relations() as u64).for_each(|number| campaign.search(number));
    campaign.finish();
}

/// Draws for `HEADSTACK_SEARCH_SECONDS` (an hour) after the kept cases. `HEADSTACK_SEARCH_SEED` sets the seed, and
/// `HEADSTACK_SEARCH_RELATION` a part of the names of relations that are judged alone.
#[test]
#[ignore = "takes long: make search"]
fn no_relation_is_broken_in_an_hour() {
    let (seed, seconds) = (seed(1), number("HEADSTACK_SEARCH_SECONDS").unwrap_or(3600));
    println!("HEADSTACK_SEARCH_SEED={seed}, {seconds} s");
    let mut campaign = Campaign::new(seed, SHRINKING.1, &text("HEADSTACK_SEARCH_RELATION"));
    let (begins, mut reported) = (Instant::now(), Instant::now());
    kept::judge_all(&mut campaign);
    for number in 0.. {
        if begins.elapsed() >= Duration::from_secs(seconds) {
            break;
        }
        campaign.search(number);
        if reported.elapsed() >= PROGRESS {
            reported = Instant::now();
            let (made, requests) = (campaign.bench.made, campaign.bench.requests);
            let (elapsed, failed) = (begins.elapsed().as_secs(), campaign.failed());
            println!(
                "search: {elapsed} s, {} cases, {made} runs, {requests} requests, {failed} broken",
                campaign.judged
            );
        }
    }
    campaign.finish();
}

/// The case in the file `HEADSTACK_SEARCH_CASE`, as a failure prints it: a line `# RELATION SEED DRIVE --set KEY=VALUE`, then the job.
#[test]
#[ignore = "judges the case in the file HEADSTACK_SEARCH_CASE: make search"]
fn relation_holds_of_the_case_in_a_file() {
    let path = text("HEADSTACK_SEARCH_CASE");
    assert!(!path.is_empty(), "HEADSTACK_SEARCH_CASE: no file");
    let file = std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{path}: {error}"));
    let head =
        file.lines().find_map(|line| line.strip_prefix("# ")).expect("the file has a line `# RELATION …`");
    let mut campaign = Campaign::new(0, 0, "");
    judge_text(&mut campaign, head, &file);
    assert_eq!(campaign.judged, 1, "{path}: no such relation: {head}");
    campaign.finish();
}

/// Judges a case from its head, `RELATION SEED DRIVE --set KEY=VALUE`, and its job.
fn judge_text(campaign: &mut Campaign, head: &str, job: &str) {
    let words: Vec<&str> = head.split_whitespace().collect();
    let [relation, seed, drive, settings @ ..] = &words[..] else { panic!("{head}: a word is missing") };
    let settings = settings.iter().filter(|word| **word != "--set");
    let machine = settings.fold(Machine::new(drive), |machine, setting| {
        let (key, value) = setting.split_once('=').unwrap_or_else(|| panic!("{setting}: no value"));
        machine.with(key, value)
    });
    let seed = seed.parse().unwrap_or_else(|_| panic!("{seed}: no seed"));
    campaign.judge_named(relation, Case { machine, load: JobText::parse(job), seed });
}
