//! `headstack sweep`: its folder, its summary, parts, and what it says of bad input.

use crate::common::{headstack, json, printed, refused};
use std::fs;
use std::path::Path;
use tempfile::TempDir;

const SWEEP: &str =
    "rigs = [\"atlas-10k\"]\nloads = [\"load.fio\"]\nseeds = 2\n[grid]\ndrive.order = [\"fcfs\", \"sptf\"]\n";

fn sweep_folder() -> TempDir {
    let folder = tempfile::tempdir().expect("there is room for a folder");
    let job = "[load]\nrw=randread\nbs=4k\nsize=1g\nioengine=libaio\niodepth=8\nnumber_ios=200\n";
    fs::write(folder.path().join("load.fio"), job).expect("the folder is writable");
    fs::write(folder.path().join("sweep.toml"), SWEEP).expect("the folder is writable");
    folder
}

fn path(folder: &Path, name: &str) -> String {
    folder.join(name).to_string_lossy().into_owned()
}

#[test]
fn sweep_is_continued_by_the_same_command() {
    let folder = sweep_folder();
    let (file, out) = (path(folder.path(), "sweep.toml"), path(folder.path(), "out"));
    let part = |part: &str| json(&["sweep", &file, "--out", &out, "--part", part, "--json", "-"]);
    let first = part("1/2");
    assert_eq!((&first["cells"], &first["ran"], &first["left"]), (&2.into(), &2.into(), &0.into()));
    assert_eq!(part("1/2")["reused"], 2);
    let whole = printed(&["sweep", &file, "--out", &out]);
    assert!(whole.starts_with("4 cells: 2 run now, 2 had rows, 0 failed\nrows: "), "{whole}");
    assert!(folder.path().join("out/sweep.json").exists());
}

#[test]
fn cells_that_a_clear_difference_makes_unneeded_are_counted() {
    let folder = sweep_folder();
    let (file, out) = (path(folder.path(), "sweep.toml"), path(folder.path(), "out"));
    let text = SWEEP
        .replace("seeds = 2", "seeds = 8\nuntil_clear = \"iops\"")
        .replace("drive.order = [\"fcfs\", \"sptf\"]", "drive.queue_depth = [1, 8]");
    fs::write(&file, text).expect("the folder is writable");
    let whole = printed(&["sweep", &file, "--out", &out]);
    let expected = "16 cells: 6 run now, 0 had rows, 0 failed\n\
                    10 cells are not needed: the difference of their settings is clear with fewer seeds\nrows: ";
    assert!(whole.starts_with(expected), "{whole}");
    let again = json(&["sweep", &file, "--out", &out, "--json", "-"]);
    assert_eq!((&again["reused"], &again["unneeded"], &again["left"]), (&6.into(), &10.into(), &0.into()));
}

#[test]
fn failed_cell_makes_exit_code_1_and_keeps_the_others() {
    let folder = sweep_folder();
    let (file, out) = (path(folder.path(), "sweep.toml"), path(folder.path(), "out"));
    let text = SWEEP.replace("drive.order = [\"fcfs\", \"sptf\"]", "drive.queue_depth = [0, 8]");
    fs::write(&file, text).expect("the folder is writable");
    let done = headstack(&["sweep", &file, "--out", &out]);
    assert_eq!(done.code, 1, "{}", done.err);
    assert!(done.out.starts_with("4 cells: 4 run now, 0 had rows, 2 failed\n"), "{}", done.out);
    assert!(done.err.contains("2 of 4 cells failed"), "{}", done.err);
}

#[test]
fn bad_input_is_one_line_with_its_place() {
    let folder = sweep_folder();
    let (file, out) = (path(folder.path(), "sweep.toml"), path(folder.path(), "out"));
    let said = refused(&["sweep", &file, "--out", &out, "--part", "3/2"], 2);
    assert!(said.contains("must be I/N with I from 1 to N"), "{said}");
    fs::write(&file, "rigs = [\"atlas-10k\"]\nloads = [\"load.fio\"]\nseed = 2\n").expect("it is writable");
    let said = refused(&["sweep", &file, "--out", &out], 2);
    assert!(said.contains("sweep.toml:3: seed: ") && said.contains("did you mean `seeds`?"), "{said}");
    assert!(!folder.path().join("out").exists());
}

#[test]
fn folder_says_how_far_its_sweep_is_and_is_merged() {
    let folder = sweep_folder();
    let (file, out) = (path(folder.path(), "sweep.toml"), path(folder.path(), "out"));
    printed(&["sweep", &file, "--out", &out, "--part", "1/2"]);
    assert_eq!(
        printed(&["sweep", "status", &out]),
        "4 cells: 2 have rows, 0 of them failed, 2 left\npart 1 of 2: 2 rows in 1 files\n"
    );
    printed(&["sweep", &file, "--out", &out, "--part", "2/2"]);
    let status = json(&["sweep", "status", &out, "--json", "-"]);
    assert_eq!((&status["finished"], &status["left"], &status["failed"]), (&4.into(), &0.into(), &0.into()));
    assert_eq!(status["parts"][1], serde_json::json!({"number": 2, "of": 2, "files": 1, "rows": 2}));
    let merged = path(folder.path(), "all.parquet");
    let said = printed(&["sweep", "merge", &out, "--out", &merged]);
    assert_eq!(said, format!("4 rows: {merged}\n"));
    let bytes = fs::read(&merged).expect("it was written");
    assert!(bytes.starts_with(b"PAR1") && bytes.ends_with(b"PAR1"));
    let said = refused(&["sweep", "status", &path(folder.path(), "absent")], 2);
    assert!(said.contains("absent: has no folder `parts`"), "{said}");
}

#[test]
fn damaged_file_is_named_and_its_cells_run_again() {
    let folder = sweep_folder();
    let (file, out) = (path(folder.path(), "sweep.toml"), path(folder.path(), "out"));
    printed(&["sweep", &file, "--out", &out]);
    let mut parts = fs::read_dir(folder.path().join("out/parts")).expect("it was made");
    let part = parts.next().expect("it has a file").expect("it can be listed").path();
    let bytes = fs::read(&part).expect("it is there");
    let mut changed = bytes.clone();
    changed[311] ^= 16;
    fs::write(&part, &changed).expect("it is writable");
    let shown = part.to_string_lossy();
    let found = headstack(&["sweep", "status", &out]);
    assert!(found.code == 1 && found.err.contains(&*shown) && found.err.contains("damaged"), "{}", found.err);
    let said = refused(&["sweep", "merge", &out, "--out", &path(folder.path(), "all.parquet")], 2);
    assert!(said.contains(&*shown) && said.contains("run the sweep again"), "{said}");
    let said = printed(&["sweep", &file, "--out", &out]);
    assert!(said.starts_with("4 cells: 4 run now, 0 had rows, 0 failed\ndamaged: "), "{said}");
    assert!(said.contains(&format!("damaged: {shown}: its cells were run again")), "{said}");
    assert_eq!(fs::read(&part).expect("it is there again"), bytes);
}

#[test]
fn rows_are_not_written_to_a_url() {
    let folder = sweep_folder();
    let said = refused(&["sweep", &path(folder.path(), "sweep.toml"), "--out", "s3://bucket/rows"], 2);
    assert!(said.contains("s3://bucket/rows: is a URL (s3:)"), "{said}");
    assert!(!Path::new("s3:").exists());
}
