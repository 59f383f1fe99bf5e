//! `headstack drive` on real input.

use crate::common::{command, headstack, json, printed, refused};
use headstack_model::{DriveSpec, drives, firmware};
use std::fs;
use std::path::Path;
use tempfile::TempDir;

fn folder() -> TempDir {
    tempfile::tempdir().expect("there is room for a folder")
}

fn path(folder: &TempDir, name: &str) -> String {
    folder.path().join(name).to_string_lossy().into_owned()
}

/// The file of a shipped drive, changed.
fn changed(folder: &TempDir, name: &str, from: &str, to: &str) -> String {
    let (_, text) = drives::all().iter().find(|(known, _)| *known == name).expect("the drive is shipped");
    assert!(text.contains(from), "{name} has `{from}`");
    let path = path(folder, "changed.toml");
    fs::write(&path, text.replacen(from, to, 1)).expect("the folder is writable");
    path
}

#[test]
fn list_shows_every_drive_within_80_columns() {
    let out = printed(&["drive", "list"]);
    let heading = out.lines().next().expect("there is a heading");
    for column in ["name", "title", "evidence"] {
        assert!(heading.contains(column), "{heading}");
    }
    for line in out.lines() {
        assert!(line.chars().count() <= 80, "{line}");
    }
    for (name, _) in drives::all() {
        assert!(out.lines().any(|line| line.split_whitespace().next() == Some(name)), "{name}");
    }
    assert_eq!(out.lines().count(), drives::all().len() + 2);
}

#[test]
fn json_list_gives_capacity_interface_and_tagging() {
    let list = json(&["drive", "list", "--json"]);
    let list = list.as_array().expect("it is a list");
    assert_eq!(list.len(), drives::all().len());
    let exos = list.iter().find(|drive| drive["name"] == "exos-x18").expect("it is shipped");
    assert_eq!(exos["capacity_bytes"], 18_000_207_937_536u64);
    assert_eq!((&exos["interface"], &exos["tagging"]), (&json_text("sata"), &json_text("ncq")));
    assert_eq!(
        (&exos["rpm"], &exos["heads"], &exos["queue_depth"]),
        (&7200.0.into(), &18.into(), &32.into())
    );
}

fn json_text(text: &str) -> serde_json::Value {
    text.into()
}

#[test]
fn show_prints_interface_and_tagging() {
    let row = |drive: &str, name: &str| {
        let out = printed(&["drive", "show", drive]);
        let line = out.lines().find(|line| line.trim_start().starts_with(name)).expect("the row is there");
        line.trim_start().trim_start_matches(name).trim_start().to_string()
    };
    assert_eq!(row("exos-x18", "interface"), "sata");
    assert_eq!(row("exos-x18", "tagging"), "ncq: a FLUSH goes alone");
    assert_eq!(row("cheetah-x15", "tagging"), "tcq: a FLUSH is queued with the others");
    assert_eq!(row("wd800jd", "tagging"), "none: one command at a time");
}

#[test]
fn show_says_which_firmware_keys_are_from_the_class() {
    let folder = folder();
    let file = changed(&folder, "samsung-hd103sj", "[queue]", "[queue]\ncommitted = 2");
    let out = printed(&["drive", "show", &file]);
    let row = |key: &str| {
        let line = out.lines().find(|line| line.split_whitespace().next() == Some(key)).expect("it is there");
        line.split_whitespace().skip(1).collect::<Vec<_>>().join(" ")
    };
    assert_eq!(row("queue.committed"), "2 from the drive file; the class has 9");
    assert_eq!(row("queue.depth"), "32 from the drive file");
    assert_eq!(row("queue.order"), "\"sptf\" from firmware class samsung-2007");
    assert!(!printed(&["drive", "show", "atlas-10k"]).contains("Firmware keys"), "it has no class");
}

#[test]
fn json_of_firmware_lists_classes_and_the_keys_of_one() {
    let classes = |args: &[&str]| {
        let found = json(&[&["drive", "firmware", "--json"], args].concat());
        found["classes"].as_array().expect("it is a list").clone()
    };
    let all = classes(&[]);
    assert_eq!(all.len(), firmware::all().len());
    assert!(all.iter().all(|class| class["keys"].is_null() && class["sources"].is_null()));
    let of = |name: &str| all.iter().find(|class| class["name"] == name).expect("it is shipped").clone();
    assert_eq!(of("sata-2013")["years"], serde_json::json!([2013, 2030]));
    assert_eq!(of("samsung-2007")["years"], serde_json::Value::Null);
    assert_eq!(of("ata-2003")["drives"], serde_json::json!(["samsung-hd400ld", "wd2500jb", "wd800jd"]));
    let one = classes(&["samsung-2007"]);
    assert_eq!(one.len(), 1);
    let keys = one[0]["keys"].as_array().expect("it has keys");
    let committed = keys.iter().find(|key| key["key"] == "queue.committed").expect("it has one");
    assert_eq!((&committed["value"], &committed["range"]), (&9.into(), &serde_json::json!([1.0, 10.0])));
    assert!(committed["source"].as_str().is_some_and(|said| said.ends_with("(fioplot)")), "{committed}");
    assert!(one[0]["sources"]["fioplot"].is_string());
    let said = refused(&["drive", "firmware", "samsung-2006", "--json"], 2);
    assert!(said.contains("did you mean `samsung-2007`?"), "{said}");
}

#[test]
fn sata_drive_with_scsi_tags_is_rejected() {
    let folder = folder();
    let file = changed(&folder, "exos-x16", "[queue]", "[queue]\ntagging = \"tcq\"");
    let said = refused(&["drive", "check", &file], 1);
    assert!(
        said.contains(": queue.tagging: \"tcq\": bus.interface is \"sata\", whose tags are \"ncq\""),
        "{said}"
    );
    let said = refused(&["sim", "exos-x16", "jobs/none.fio", "--set", "drive.queue.tagging=tcq"], 2);
    assert!(said.contains("queue.tagging: \"tcq\": bus.interface is \"sata\""), "{said}");
}

#[test]
fn check_and_show_note_allowed_but_unusual_keys() {
    let folder = folder();
    let file = changed(&folder, "exos-x16", "interface = ", "# interface = ");
    let out = printed(&["drive", "check", &file]);
    let lines: Vec<&str> = out.lines().collect();
    assert!(lines[0].starts_with("ok: ") && lines.len() == 2, "{out}");
    assert!(
        lines[1].starts_with(&format!("note: {file}:")) && lines[1].contains(": bus.interface: "),
        "{out}"
    );
    assert!(printed(&["drive", "show", &file]).contains("\nNotes\n  bus.interface: "));
    assert!(!printed(&["drive", "show", "exos-x16"]).contains("Notes"));
}

/// A data sheet on the command line.
const SHEET: [&str; 12] = [
    "drive",
    "new",
    "--capacity",
    "10TB",
    "--rpm",
    "7200",
    "--heads",
    "14",
    "--mb-s",
    "215",
    "--seek",
    "8.5",
];

#[test]
fn data_sheet_becomes_a_drive_file_with_its_figures() {
    let folder = folder();
    let file = path(&folder, "wd-red.toml");
    let more = ["--cache", "256MB", "--interface", "sata"];
    let args = [&SHEET[..], &more[..], &["-o", &file]].concat();
    assert_eq!(printed(&args), "");
    assert!(printed(&["drive", "check", &file]).starts_with(&format!("ok: {file}: wd-red: ")));
    assert_eq!(printed(&["drive", "check", &file]).lines().count(), 1, "nothing is to be noted");
    let shown = printed(&["drive", "show", &file]);
    for figure in [
        "10.0 TB, 19,531,250,000 sectors",
        "14 heads",
        "long reads 215 to ",
        "8.50 ms on average",
        "64 segments of 4096 KiB, read-ahead: segment",
        "write cache    full",
        "ncq: a FLUSH goes alone",
    ] {
        assert!(shown.contains(figure), "{figure} in {shown}");
    }
    let text = printed(&[&SHEET[..], &more[..], &["--name", "wd-red"]].concat());
    assert_eq!(text, fs::read_to_string(&file).expect("it was written"), "standard output or a file");
    assert!(
        text.contains("\nrpm = 7200 # given\n") && text.contains("\nhead_switch_ms = 0.57 # assumption: "),
        "{text}"
    );
}

#[test]
fn impossible_data_sheet_figures_are_rejected() {
    let said = |more: &[&str]| refused(&[&SHEET[..], more].concat(), 2);
    assert!(said(&["--full-stroke", "9"]).contains("average seek: 8.5 is outside "));
    assert!(said(&["--name", "My Drive"]).contains("use lower case, digits and hyphens"));
    assert!(said(&["--queue-depth", "64"]).contains("64 is outside 1 to 32 tags of NCQ"));
    let usage = headstack(&[&SHEET[..], &["--interface", "usb"]].concat());
    assert_eq!(usage.code, 2);
    assert!(usage.err.contains("sata, ide, scsi, sas, fc, ssa, smd"), "{}", usage.err);
}

#[test]
fn json_of_show_reads_back_as_the_whole_drive() {
    let shown = json(&["drive", "show", "atlas-10k", "--json"]);
    assert_eq!(shown["name"], "atlas-10k");
    assert_eq!(shown["capacity_sectors"], 17_966_953);
    let spec: DriveSpec = serde_json::from_value(shown).expect("it reads back");
    assert_eq!(spec, drives::load("atlas-10k").expect("the drive is shipped"));
}

#[test]
fn show_prints_capacity_rpm_zones_and_source() {
    let out = printed(&["drive", "show", "atlas-10k"]);
    for figure in ["9.20 GB", "17,966,953 sectors", "10025 rpm", "334 to 229 sectors per track", "DIXtrac"] {
        assert!(out.contains(figure), "{figure} in {out}");
    }
}

#[test]
fn shipped_drive_files_pass_the_check() {
    let folder = folder();
    for name in ["atlas-10k", "wd800jd"] {
        let (_, text) = drives::all().iter().find(|(known, _)| *known == name).expect("the drive is shipped");
        let file = path(&folder, &format!("{name}.toml"));
        fs::write(&file, text).expect("the folder is writable");
        assert!(printed(&["drive", "check", &file]).starts_with(&format!("ok: {file}: {name}: ")));
    }
}

#[test]
fn drive_file_fault_names_file_line_and_key() {
    let folder = folder();
    let file = changed(&folder, "atlas-10k", "rpm = ", "rpm = -");
    let text = fs::read_to_string(&file).expect("it was written");
    let line = 1 + text.lines().position(|line| line.starts_with("rpm = -")).expect("the key is there");
    let said = refused(&["drive", "check", &file], 1);
    assert!(said.contains(&format!("{file}:{line}: mechanics.rpm: ")), "{said}");
    // For every other command the file is input, and bad.
    assert!(refused(&["drive", "show", &file], 2).contains(&format!("{file}:{line}: mechanics.rpm: ")));
    let unknown = changed(&folder, "atlas-10k", "head_switch_ms = ", "head_swich_ms = ");
    let said = refused(&["drive", "check", &unknown], 1);
    assert!(said.contains("did you mean `head_switch_ms`?"), "{said}");
}

#[test]
fn missing_drive_file_is_rejected_by_name() {
    let said = refused(&["drive", "check", "/nowhere/at-all.toml"], 2);
    assert!(said.contains("/nowhere/at-all.toml: "), "{said}");
}

#[test]
fn unknown_drive_is_rejected_with_the_nearest_name() {
    assert!(refused(&["drive", "show", "atlas10k"], 2).contains("did you mean `atlas-10k`?"));
}

#[test]
fn plot_is_one_file_that_loads_nothing() {
    let folder = folder();
    let page = path(&folder, "page.html");
    assert_eq!(printed(&["drive", "plot", "atlas-10k", "-o", &page]).trim_end(), page);
    let html = fs::read_to_string(&page).expect("it was written");
    for part in ["Quantum Atlas 10K", "Zone map", "Seek curve", "sectors per track", "MB/s"] {
        assert!(html.contains(part), "{part}");
    }
    for loader in ["<link", " src=\"", "@import "] {
        assert!(!html.contains(loader), "{loader}");
    }
    assert_eq!(fs::read_dir(folder.path()).expect("it is a folder").count(), 1, "no other file is left");
}

#[test]
fn plot_is_named_after_the_drive_file_and_cites_it() {
    let folder = folder();
    let (_, text) = drives::all().iter().find(|(name, _)| *name == "wd800jd").expect("the drive is shipped");
    fs::write(folder.path().join("mine.toml"), text).expect("the folder is writable");
    let done =
        command(&["drive", "plot", "mine.toml"]).current_dir(folder.path()).output().expect("it starts");
    assert_eq!(String::from_utf8_lossy(&done.stdout), "mine.html\n");
    let html = fs::read_to_string(folder.path().join("mine.html")).expect("it was written");
    assert!(html.contains("drive file mine.toml."));
}

#[test]
fn unwritable_plot_is_rejected_in_one_line() {
    let said = refused(&["drive", "plot", "atlas-10k", "-o", "/nowhere/page.html"], 2);
    assert!(said.contains("/nowhere/page.html: "), "{said}");
}

#[test]
fn imported_drive_passes_the_check() {
    let rig = Path::new(env!("CARGO_MANIFEST_DIR")).join("../disksim/tests/small/rig.parv");
    let rig = rig.to_str().expect("the workspace's path is UTF-8");
    let folder = folder();
    let file = path(&folder, "imported.toml");
    let done = headstack(&["drive", "import", rig, "-o", &file]);
    assert_eq!(done.code, 0, "{}", done.err);
    assert!(done.out.is_empty());
    assert!(done.err.lines().all(|line| line.starts_with("not carried over: ")), "{}", done.err);
    assert!(!done.err.is_empty(), "a rig has things that are not the drive's");
    printed(&["drive", "check", &file]);
    assert_eq!(printed(&["drive", "import", rig]), fs::read_to_string(&file).expect("it was written"));
}

#[test]
fn import_fault_names_file_and_line() {
    let folder = folder();
    let file = path(&folder, "broken.parv");
    fs::write(&file, "disksim_disk D {\n  Model = source missing.model\n}\n")
        .expect("the folder is writable");
    let said = refused(&["drive", "import", &file], 2);
    assert!(said.contains(&format!("{file}:2: ")) && said.contains("missing.model"), "{said}");
}

#[test]
fn reference_drives_import_and_parse() {
    let Some(rigs) = headstack_prerequisites::reference_data("disksim/rigs") else { return };
    for rig in ["atlas10k", "cheetah9LP", "ibm18es", "hp_c2247a", "hp_c3323a", "dec_rz26", "st41601n"] {
        let file = rigs.join(format!("{rig}.parv"));
        let out = printed(&["drive", "import", file.to_str().expect("the path is UTF-8")]);
        DriveSpec::parse(&out, rig).unwrap_or_else(|error| panic!("{error}"));
    }
}

/// A trace that a shipped drive leaves with a slower command path: reads at random, each 10 ms after the one before.
fn trace_of_a_slower_drive(folder: &TempDir) -> String {
    let job = path(folder, "job.fio");
    fs::write(&job, "[j]\nrw=randread\nbs=8k\ndirect=1\nthinktime=10000\nnumber_ios=1500\n")
        .expect("the folder is writable");
    let trace = path(folder, "disk.csv");
    let set = "drive.overhead.after_read.read_miss_ms=2.5";
    printed(&["sim", "atlas-10k", &job, "--set", set, "--requests", &trace]);
    trace
}

#[test]
fn drive_is_fitted_to_what_a_disk_did() {
    let folder = folder();
    let (trace, file, page) =
        (trace_of_a_slower_drive(&folder), path(&folder, "mine.toml"), path(&folder, "fit.html"));
    let found =
        json(&["drive", "fit", &trace, "--from", "atlas-10k", "-o", &file, "--json", "--report", &page]);
    assert_eq!((&found["fitted_requests"], &found["held_requests"]), (&1050.into(), &450.into()));
    let demerit = |which: &str| found["held"][which]["demerit_ms"].as_f64().expect("it is a number");
    assert!(demerit("before") > 1.5 && demerit("after") < 0.15, "{found:#}");
    assert!(printed(&["drive", "check", &file]).contains("mine"));
    assert!(fs::read_to_string(&page).expect("the page is written").contains("held back"));
    let text = fs::read_to_string(&file).expect("the file is written");
    assert!(text.contains("evidence = \"fitted\"") && text.contains("# fit\n"));
}

#[test]
fn trace_that_cannot_be_fitted_is_refused_and_nothing_is_written() {
    let folder = folder();
    let (trace, file) = (path(&folder, "few.trace"), path(&folder, "mine.toml"));
    fs::write(&trace, "R Hit 100 8 5000 1000\n".repeat(50)).expect("the folder is writable");
    let message =
        refused(&["drive", "fit", &trace, "--format", "validate", "--from", "atlas-10k", "-o", &file], 2);
    assert!(message.contains("50 of its 50 requests have a completion; a fit needs 500"), "{message}");
    assert!(!Path::new(&file).exists());
    let message = refused(&["drive", "fit", &trace, "--from", "atlas-10k", "-o", &trace], 2);
    assert!(message.contains("--output"), "{message}");
}
