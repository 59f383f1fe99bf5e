//! Sweeps in folders: resumed, in parts, by two runs at once, and with cells that fail.

#![allow(clippy::disallowed_methods, reason = "tests read and write files")]

mod folder;

use headstack_sweep::{MODEL_VERSION, SweepError, SweepFile, SweepPart, SweepPlan, SweepRun, read_rows};
use serde_json::{Map, Value};
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};

const JOB: &str = "[load]\nrw=randread\nbs=4k\nsize=1g\nioengine=libaio\niodepth=8\nnumber_ios=200\n";

const SWEEP: &str = r#"
rigs = ["atlas-10k", "cheetah-9lp"]
loads = ["load.fio"]
seeds = 3
[grid]
drive.order = ["fcfs", "sptf"]
drive.queue_depth = [1, 8]
"#;

fn files(path: &Path) -> std::io::Result<File> {
    File::open(path)
}

/// A folder with a sweep file and its load, and folders of results in it.
struct Place(tempfile::TempDir);

impl Place {
    fn new() -> Place {
        let place = Place(tempfile::tempdir().expect("there is room for a folder"));
        place.write("load.fio", JOB);
        place
    }

    fn write(&self, name: &str, text: &str) {
        fs::write(self.path(name), text).expect("the folder is writable");
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn plan_of(&self, text: &str, version: &str) -> Result<SweepPlan, SweepError> {
        let origin = self.path("sweep.toml").display().to_string();
        SweepPlan::new(&SweepFile::parse(text, "sweep.toml")?, &origin, version, &files)
    }

    fn plan(&self, text: &str) -> SweepPlan {
        self.plan_of(text, MODEL_VERSION).unwrap_or_else(|error| panic!("{error}"))
    }

    /// The rows of a sweep that was run at once.
    fn rows(&self, text: &str, name: &str) -> Vec<Map<String, Value>> {
        let (plan, folder) = (self.plan(text), self.path(name));
        let summary = SweepRun::new(&plan, &folder, &files).run().unwrap_or_else(|error| panic!("{error}"));
        assert_eq!((summary.cells, summary.is_stopped), (plan.len(), false));
        rows(&folder)
    }
}

fn rows(folder: &Path) -> Vec<Map<String, Value>> {
    read_rows(folder).unwrap_or_else(|error| panic!("{error}"))
}

/// The files of the rows, without their contents.
fn parts(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder.join("parts")).expect("a run made the folder");
    let mut names: Vec<String> = entries
        .map(|entry| entry.expect("it can be listed").file_name().to_string_lossy().into_owned())
        .collect();
    names.sort();
    names
}

fn keys(plan: &SweepPlan) -> Vec<String> {
    plan.cells().map(|cell| plan.key(&cell)).collect()
}

#[test]
fn rows_have_the_figures_of_the_same_run_alone() {
    let place = Place::new();
    let found = place.rows(SWEEP, "out");
    assert_eq!(found.len(), 24);
    let is_wanted = |row: &&Map<String, Value>| {
        row["rig"] == "atlas-10k" && row["drive.order"] == "sptf" && row["drive.queue_depth"] == 8
    };
    let row = found.iter().filter(is_wanted).find(|row| row["seed"] == 2).expect("the grid has it");
    let mut rig = headstack::load_rig("atlas-10k", &files).expect("the drive ships");
    for (key, value) in [("drive.order", "sptf"), ("drive.queue_depth", "8")] {
        rig.set(key, value).unwrap_or_else(|error| panic!("{error}"));
    }
    let path = place.path("load.fio").display().to_string();
    let load = headstack::Workload::open(&path, &headstack::TraceOptions::default(), &files);
    let load = load.unwrap_or_else(|error| panic!("{error}"));
    let alone = headstack::Simulation::new(&rig, load, 2).and_then(headstack::Simulation::run);
    let alone = alone.unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(row["requests"], 200);
    assert_eq!(row["error"], Value::Null);
    assert_eq!(row["iops"], alone.iops());
    assert_eq!(row["p99_ms"], alone.response().p99().as_ms());
    assert_eq!(row["arm_share"], alone.utilisation(&alone.devices[0]));
    let parts = headstack::sim::TimeSplit::NAMES;
    let sum: f64 = parts.iter().map(|part| row[&format!("{part}_ms")].as_f64().expect("a part")).sum();
    assert!((sum - row["mean_ms"].as_f64().expect("a mean")).abs() < 1e-6, "the parts add up: {sum}");
}

#[test]
fn stopped_sweep_resumes_with_the_rows_of_one_run() {
    let place = Place::new();
    let whole = place.rows(SWEEP, "whole");
    let (plan, folder) = (place.plan(SWEEP), place.path("resumed"));
    let mut ran = 0;
    for most in [5, 9, usize::MAX] {
        let done = AtomicUsize::new(0);
        let stops = || done.load(Ordering::Relaxed) >= most;
        let count = |cells: usize, _: usize| done.store(cells, Ordering::Relaxed);
        let run = SweepRun::new(&plan, &folder, &files).stop_if(&stops).report(&count);
        let summary = run.run().unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(summary.reused, ran, "finished cells are not run again");
        ran += summary.ran;
        assert_eq!(summary.is_stopped, ran < 24);
        assert!(ran >= most.min(24), "the rows of finished cells are kept: {ran} of {most}");
        assert_eq!(rows(&folder).len(), ran);
    }
    assert_eq!(rows(&folder), whole);
}

/// Twelve seeds of three settings each, of which the second has no effect and the third nearly doubles the rate.
const UNTIL_CLEAR: &str = r#"
rigs = ["atlas-10k", "cheetah-9lp"]
loads = ["load.fio"]
seeds = 12
until_clear = "iops"
[[list]]
drive.queue_depth = 1
[[list]]
drive.queue_depth = 1
host.queue.deadline.fifo_batch = 4
[[list]]
drive.queue_depth = 8
drive.order = "sptf"
"#;

#[test]
fn settings_with_a_clear_difference_get_no_more_seeds() {
    let place = Place::new();
    let folder = place.path("out");
    let plan = place.plan(UNTIL_CLEAR);
    let summary = SweepRun::new(&plan, &folder, &files).run().unwrap_or_else(|error| panic!("{error}"));
    assert_eq!((summary.ran, summary.unneeded, summary.is_stopped), (54, 18, false), "{summary:?}");
    let found = rows(&folder);
    for rig in ["atlas-10k", "cheetah-9lp"] {
        let count = |is_counted: &dyn Fn(&Map<String, Value>) -> bool| {
            found.iter().filter(|row| row["rig"] == rig && is_counted(row)).count()
        };
        assert_eq!(count(&|row| row["drive.order"] == "sptf"), 3);
        assert_eq!(count(&|row| row["host.queue.deadline.fifo_batch"] == 4), 12);
        assert_eq!(count(&|row| row["drive.order"] == "sptf" && row["seed"].as_u64() > Some(2)), 0);
    }
    let again = SweepRun::new(&plan, &folder, &files).run().unwrap_or_else(|error| panic!("{error}"));
    assert_eq!((again.ran, again.reused, again.unneeded), (0, 54, 18));
    let whole = place.rows(&UNTIL_CLEAR.replace("until_clear = \"iops\"\n", ""), "whole");
    assert_eq!(whole.len(), 72);
    assert!(found.iter().all(|row| whole.contains(row)), "the rows are those of the whole sweep");
}

#[test]
fn sweep_until_clear_has_the_same_rows_in_parts_and_after_a_stop() {
    let place = Place::new();
    let (plan, at_once) = (place.plan(UNTIL_CLEAR), place.path("at-once"));
    SweepRun::new(&plan, &at_once, &files).run().unwrap_or_else(|error| panic!("{error}"));
    let in_parts = place.path("in-parts");
    for text in ["1/3", "2/3", "3/3"] {
        let part = text.parse().unwrap_or_else(|error: SweepError| panic!("{error}"));
        let summary = SweepRun::new(&plan, &in_parts, &files).part(part).run();
        let summary = summary.unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(
            summary.cells,
            if text == "3/3" { 0 } else { 36 },
            "a part has whole pairs of rig and load"
        );
    }
    assert_eq!(rows(&in_parts), rows(&at_once));
    let stopped = place.path("stopped");
    for most in [7, 30, usize::MAX] {
        let done = AtomicUsize::new(0);
        let stops = || done.load(Ordering::Relaxed) >= most;
        let count = |cells: usize, _: usize| done.store(cells, Ordering::Relaxed);
        let summary = SweepRun::new(&plan, &stopped, &files).stop_if(&stops).report(&count).run();
        let summary = summary.unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(summary.is_stopped, most != usize::MAX, "{summary:?}");
        assert!(!summary.is_stopped || summary.unneeded == 0, "it is not known yet what needs no run");
    }
    assert_eq!(rows(&stopped), rows(&at_once));
}

/// The sweep in three parts.
fn in_parts(place: &Place, name: &str) -> PathBuf {
    let (plan, folder) = (place.plan(SWEEP), place.path(name));
    for number in 1..=3 {
        let run = SweepRun::new(&plan, &folder, &files).part(SweepPart { number, of: 3 });
        let summary = run.run().unwrap_or_else(|error| panic!("{error}"));
        assert_eq!((summary.cells, summary.ran), (8, 8));
    }
    folder
}

#[test]
fn part_leaves_one_file_and_a_lost_one_is_run_again_byte_for_byte() {
    let place = Place::new();
    let folder = in_parts(&place, "out");
    let names = parts(&folder);
    assert!(names.len() == 3 && names[0].starts_with("1-of-3-"), "{names:?}");
    let whole = rows(&folder);
    let lost = folder.join("parts").join(&names[0]);
    let bytes = fs::read(&lost).expect("it is there");
    fs::remove_file(&lost).expect("the folder is writable");
    // A killed run leaves a temporary file.
    fs::write(folder.join("parts/.writing-a.parquet"), &bytes[..bytes.len() / 2]).expect("it is writable");
    let plan = place.plan(SWEEP);
    let part = |number| SweepRun::new(&plan, &folder, &files).part(SweepPart { number, of: 3 }).run();
    assert_eq!(part(2).unwrap_or_else(|error| panic!("{error}")).ran, 0);
    assert_eq!(part(1).unwrap_or_else(|error| panic!("{error}")).ran, 8);
    assert_eq!(fs::read(&lost).expect("it is there again"), bytes);
    assert_eq!(rows(&folder), whole);
}

#[test]
fn part_reads_no_file_of_another_part() {
    let place = Place::new();
    let folder = in_parts(&place, "out");
    for name in parts(&folder).iter().filter(|name| !name.starts_with("2-")) {
        fs::write(folder.join("parts").join(name), b"damaged").expect("the folder is writable");
    }
    let plan = place.plan(SWEEP);
    let summary = SweepRun::new(&plan, &folder, &files).part(SweepPart { number: 2, of: 3 }).run();
    let summary = summary.unwrap_or_else(|error| panic!("{error}"));
    assert_eq!((summary.reused, summary.ran, summary.damaged.len()), (8, 0, 0));
    let whole = SweepRun::new(&plan, &folder, &files).run().unwrap_or_else(|error| panic!("{error}"));
    assert_eq!((whole.reused, whole.ran, whole.damaged.len()), (8, 16, 2), "another division reads them all");
}

#[test]
fn parts_together_equal_the_whole() {
    let place = Place::new();
    let whole = place.rows(SWEEP, "whole");
    let (plan, folder) = (place.plan(SWEEP), place.path("parts"));
    for (number, cells) in [(1, 8), (3, 8), (2, 8)] {
        let run = SweepRun::new(&plan, &folder, &files).part(SweepPart { number, of: 3 });
        let summary = run.run().unwrap_or_else(|error| panic!("{error}"));
        assert_eq!((summary.cells, summary.ran, summary.reused), (cells, cells, 0));
    }
    assert_eq!(rows(&folder), whole);
}

#[test]
fn two_runs_at_once_leave_each_row_once() {
    let place = Place::new();
    let whole = place.rows(SWEEP, "whole");
    let (plan, folder) = (place.plan(SWEEP), place.path("both"));
    let (one, other) = rayon::join(
        || SweepRun::new(&plan, &folder, &files).run().map(|summary| summary.cells),
        || SweepRun::new(&plan, &folder, &files).run().map(|summary| summary.cells),
    );
    assert_eq!((one.ok(), other.ok()), (Some(24), Some(24)));
    assert_eq!(rows(&folder), whole);
    let names = parts(&folder);
    // Each merges what it finds; one that has ended its list does not see the file of the other.
    let are_rows = names.iter().all(|name| name.ends_with(".parquet"));
    assert!((1..=2).contains(&names.len()) && are_rows, "no temporary file: {names:?}");
}

#[test]
fn failing_cell_is_a_row_and_loses_no_other() {
    let place = Place::new();
    // The second load reads beyond the end of the smaller drive.
    place.write("large.fio", &JOB.replace("size=1g", "offset=8900m\nsize=200m"));
    let text = r#"
rigs = ["atlas-10k", "exos-x18"]
loads = ["load.fio", "large.fio"]
[[list]]
drive.queue_depth = 8
[[list]]
drive.queue_depth = 0
"#;
    let (plan, folder) = (place.plan(text), place.path("out"));
    let summary = SweepRun::new(&plan, &folder, &files).run().unwrap_or_else(|error| panic!("{error}"));
    assert_eq!((summary.cells, summary.ran, summary.failed.len()), (8, 8, 5), "{summary:?}");
    for row in rows(&folder) {
        let has_failed =
            row["drive.queue_depth"] == 0 || (row["rig"] == "atlas-10k" && row["load"] == "large.fio");
        assert_eq!(row["error"].is_string(), has_failed, "{row:?}");
        assert_eq!(row["iops"].is_null(), has_failed, "{row:?}");
    }
    let again = SweepRun::new(&plan, &folder, &files).run().unwrap_or_else(|error| panic!("{error}"));
    assert_eq!((again.ran, again.reused, &again.failed), (0, 8, &summary.failed));
}

#[test]
fn settings_that_no_rig_accepts_are_one_error() {
    let place = Place::new();
    let text = SWEEP.replace("drive.order", "drive.ordre");
    let refused = place.plan_of(&text, MODEL_VERSION).err().expect("there is no such key").to_string();
    assert!(refused.contains("no rig accepts these settings") && refused.contains("ordre"), "{refused}");
}

#[test]
fn key_changes_with_version_rig_load_seed_and_settings() {
    let place = Place::new();
    place.write("drive.toml", &headstack::load_drive("atlas-10k", &files).expect("it ships").to_toml());
    let text = "rigs = [\"./drive.toml\"]\nloads = [\"load.fio\"]\n[[list]]\ndrive.queue_depth = 8\n";
    let plan = place.plan(text);
    let first = keys(&plan);
    assert_eq!(first, keys(&place.plan(text)));
    assert_ne!(first, keys(&place.plan_of(text, "0.0.9").unwrap_or_else(|error| panic!("{error}"))));
    assert_ne!(first, keys(&place.plan(&text.replace("= 8", "= 9"))));
    assert_ne!(first, keys(&place.plan(&format!("first_seed = 1\n{text}"))));
    assert_ne!(first, keys(&place.plan(&format!("trace.wrap = true\n{text}"))));
    let more = place.plan(&format!("seeds = 2\n{text}"));
    assert_eq!(first, keys(&more)[..1], "more seeds leave the others' keys alone");
    place.write("load.fio", &JOB.replace("bs=4k", "bs=8k"));
    assert_ne!(first, keys(&place.plan(text)), "the content of the load counts, not its name");
    place.write("load.fio", JOB);
    assert_eq!(first, keys(&place.plan(text)));
    let drive = fs::read_to_string(place.path("drive.toml")).expect("it was written");
    place.write("drive.toml", &drive.replacen("title = \"", "title = \"B ", 1));
    assert_ne!(first, keys(&place.plan(text)), "the content of the drive file counts, not its name");
}

#[test]
fn included_file_is_part_of_the_load() {
    let place = Place::new();
    let included = place.path("size.fio");
    place.write("size.fio", "size=1g\n");
    let job = format!("[global]\ninclude {}\n{}", included.display(), JOB.replace("size=1g\n", ""));
    place.write("load.fio", &job);
    let first = place.plan(SWEEP);
    place.write("size.fio", "size=2g\n");
    assert_ne!(keys(&first), keys(&place.plan(SWEEP)));
}

#[test]
fn larger_sweep_reuses_the_rows_of_a_smaller_one() {
    let place = Place::new();
    place.rows(SWEEP, "out");
    let larger = place.plan(&SWEEP.replace("seeds = 3", "seeds = 4"));
    let folder = place.path("out");
    let summary = SweepRun::new(&larger, &folder, &files).run().unwrap_or_else(|error| panic!("{error}"));
    assert_eq!((summary.reused, summary.ran), (24, 8));
    assert_eq!(rows(&folder), place.rows(&SWEEP.replace("seeds = 3", "seeds = 4"), "larger"));
}

#[test]
fn rows_of_another_version_are_not_mixed_in() {
    let place = Place::new();
    place.rows(SWEEP, "out");
    let newer = place.plan_of(SWEEP, "9.9.9").unwrap_or_else(|error| panic!("{error}"));
    let refused = SweepRun::new(&newer, &place.path("out"), &files).run().expect_err("the rows are older");
    let refused = refused.to_string();
    assert!(refused.contains("24 of its 24 rows") && refused.contains("use a new folder"), "{refused}");
}

#[test]
fn missing_load_is_one_error() {
    let place = Place::new();
    let refused = place.plan_of(&SWEEP.replace("load.fio", "gone.fio"), MODEL_VERSION);
    let refused = refused.err().expect("there is no such file").to_string();
    assert!(refused.contains("gone.fio: No such file"), "{refused}");
}

#[test]
fn order_of_the_parts_does_not_matter() {
    let place = Place::new();
    let plan = place.plan(SWEEP);
    let run = |name: &str, order: &[usize]| {
        let folder = place.path(name);
        for number in order {
            let part = SweepPart { number: *number, of: order.len() };
            SweepRun::new(&plan, &folder, &files).part(part).run().unwrap_or_else(|error| panic!("{error}"));
        }
        rows(&folder)
    };
    assert_eq!(run("one", &[1, 2, 3, 4]), run("other", &[4, 2, 3, 1]));
}

#[test]
fn shipped_sweeps_have_a_valid_plan() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../sweeps");
    let mut met = 0;
    for entry in fs::read_dir(folder).expect("the folder is in the tree") {
        let path = entry.expect("it can be listed").path();
        let origin = path.display().to_string();
        let text = fs::read_to_string(&path).expect("it is a text");
        let file = SweepFile::parse(&text, &origin).unwrap_or_else(|error| panic!("{error}"));
        let plan = SweepPlan::new(&file, &origin, MODEL_VERSION, &files);
        let plan = plan.unwrap_or_else(|error| panic!("{error}"));
        assert!(plan.cells().all(|cell| plan.rig(&cell).is_ok()), "{origin}");
        met += 1;
    }
    assert!(met > 0, "the folder has sweeps");
}
