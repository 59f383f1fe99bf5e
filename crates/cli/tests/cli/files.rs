//! What commands write, and what they must not write over; what they read, and what they say of what they cannot.

use crate::common::{headstack, printed, refused};
use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;

/// A folder with a fio job, a trace and a load file.
struct Place(tempfile::TempDir);

const JOB: &str = "[j]\nrw=randread\nsize=1m\nnumber_ios=20\n";

impl Place {
    fn new() -> Place {
        let place = Place(tempfile::tempdir().expect("there is room for a folder"));
        place.write("job.fio", JOB);
        place.write("a.trace", "0.000000 0 8 8 1\n10.000000 0 80 8 0\n");
        place.write("load.toml", "requests = 20\n[[blocks]]\ndepth = 1\n");
        place
    }

    fn at(&self, name: &str) -> String {
        self.0.path().join(name).to_string_lossy().into_owned()
    }

    fn write(&self, name: &str, text: &str) -> String {
        fs::write(self.at(name), text).expect("the folder is writable");
        self.at(name)
    }

    fn read(&self, name: &str) -> String {
        fs::read_to_string(self.at(name)).expect("it is there")
    }

    /// Files that are there.
    fn count(&self) -> usize {
        fs::read_dir(self.0.path()).expect("it is there").count()
    }
}

#[test]
fn output_over_an_input_is_rejected_before_anything_runs() {
    let place = Place::new();
    let [job, trace, other] = [place.at("job.fio"), place.at("a.trace"), place.at("./job.fio")];
    let rig = place.write("rig.toml", "[[drive]]\npreset = \"wd800jd\"\n");
    let shipped = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("../../drives/wd800jd.toml"));
    let drive = place.write("drive.toml", &shipped.expect("it ships"));
    let common = place.write("common.inc", "bs=4k\n");
    let includes = place.write("includes.fio", "[j]\ninclude common.inc\nsize=1m\nnumber_ios=4\n");
    let map = place.at("map");
    printed(&["drive", "map", "wd800jd", "-o", &map]);
    let before = place.count();
    for args in [
        &["sim", "wd800jd", &job, "--json", &job][..],
        &["sim", "wd800jd", &job, "--requests", &other],
        &["sim", "wd800jd", &job, "--report", &job],
        &["sim", &rig, &job, "--json", &rig],
        &["sim", "wd800jd", &includes, "--json", &common],
        &["rearrange", "simulate", "wd800jd", &trace, "--report", &trace],
        &["compare", "wd800jd", "atlas-10k", &job, "--json", &job],
        &["compare", &rig, "atlas-10k", &job, "--report", &rig],
        &["trace", "convert", &trace, &trace, "--to", "spc"],
        &["trace", "cut", &trace, &trace, "--to", "5ms"],
        &["trace", "plot", &trace, "-o", &trace],
        &["drive", "map", &drive, "-o", &drive],
        &["drive", "plot", &drive, "-o", &drive],
        &["layout", "exclude", &map, "-o", &map],
        &["probe", "--drive", "wd800jd", "--known", &map, "--map", &map],
        &["validate", "--drive", "wd800jd", "--trace", &trace, "--report", &trace],
    ] {
        let said = refused(args, 2);
        assert!(said.contains("would write over it"), "{args:?}: {said}");
    }
    let new = place.at("new");
    for args in [
        &["sim", "wd800jd", &job, "--json", &new, "--requests", &new][..],
        &["sim", "wd800jd", &job, "--json", "-", "--requests", "-"],
        &["compare", "wd800jd", "atlas-10k", &job, "--json", &new, "--report", &new],
    ] {
        let said = refused(args, 2);
        assert!(said.contains("--json goes there, too"), "{args:?}: {said}");
    }
    assert_eq!((place.read("job.fio"), place.count()), (JOB.to_string(), before), "nothing was written");
}

#[test]
fn requests_are_written_to_standard_output() {
    let place = Place::new();
    let text = printed(&["sim", "wd800jd", &place.at("job.fio"), "--requests", "-"]);
    assert!(text.starts_with("time_ns,device,op,offset,bytes,") && text.lines().count() == 21, "{text}");
    let page = refused(&["sim", "wd800jd", &place.at("job.fio"), "--report", "-"], 2);
    assert!(page.contains("only --json, --requests and traces go to standard output"), "{page}");
}

#[test]
fn trace_options_are_rejected_for_other_loads() {
    let place = Place::new();
    let (job, load) = (place.at("job.fio"), place.at("load.toml"));
    let given = ["--format", "msr", "--time-scale", "9", "--all-to", "7", "--wrap", "--skip-bad", "3"];
    let said = refused(&[&["sim", "wd800jd", &job][..], &given].concat(), 2);
    assert!(said.contains("--format, --time-scale, --wrap, --all-to, --skip-bad are for traces"), "{said}");
    for (option, load) in
        [("--wrap", &job), ("--time-scale=2", &load), ("--all-to=0", &load), ("--skip-bad=1", &job)]
    {
        let said = refused(&["compare", "wd800jd", "atlas-10k", load, option], 2);
        assert!(said.contains(" is for traces, and "), "{said}");
    }
    let trace = place.at("a.trace");
    printed(&[
        "sim",
        "wd800jd",
        &trace,
        "--format",
        "disksim",
        "--time-scale",
        "2",
        "--wrap",
        "--all-to",
        "0",
    ]);
}

#[test]
fn output_keeps_the_mode_of_the_replaced_file() {
    let place = Place::new();
    let secret = place.write("secret", "k");
    fs::set_permissions(&secret, fs::Permissions::from_mode(0o600)).expect("it is ours");
    printed(&["trace", "convert", &place.at("a.trace"), &secret, "--to", "headstack"]);
    assert_eq!(fs::metadata(&secret).expect("it is there").permissions().mode() & 0o777, 0o600);
    assert!(place.read("secret").starts_with("time_ns,"));
}

#[test]
fn output_through_a_link_is_rejected_for_root() {
    let place = Place::new();
    let (target, link) = (place.write("target", "kept"), place.at("link"));
    symlink(&target, &link).expect("the folder is writable");
    let done = headstack(&["trace", "convert", &place.at("a.trace"), &link, "--to", "headstack"]);
    if is_root() {
        assert_eq!((done.code, place.read("target")), (2, "kept".to_string()), "{}", done.err);
        assert!(done.err.contains("a link, which root does not write through"), "{}", done.err);
    } else {
        assert_eq!(done.code, 0, "{}", done.err);
    }
}

/// Whether the test runs as root: only root may read this.
fn is_root() -> bool {
    fs::read_dir("/root").is_ok()
}

#[test]
fn endless_input_is_rejected() {
    let place = Place::new();
    let zero = "/dev/zero";
    for args in [
        &["drive", "check", zero][..],
        &["drive", "import", zero],
        &["rig", "check", zero],
        &["rig", "import", zero],
        &["serve", zero, "--check=file"],
        &["sim", zero, &place.at("job.fio")],
    ] {
        let said = refused(args, 2);
        assert!(said.contains("/dev/zero: more than 16 MiB"), "{args:?}: {said}");
    }
    for name in ["zero.fio", "zero.toml"] {
        symlink(zero, place.at(name)).expect("the folder is writable");
        let said = refused(&["sim", "wd800jd", &place.at(name)], 2);
        assert!(said.contains("more than 16 MiB"), "{said}");
    }
    refused(&["sim", "wd800jd", zero], 2);
    refused(&["trace", "stat", zero], 2);
    refused(&["layout", "exclude", zero], 2);
    refused(&["probe", "--drive", "st41601n", "--what", "speed", "--journal", zero, "--resume"], 2);
}

#[test]
fn control_characters_of_inputs_never_reach_the_terminal() {
    let place = Place::new();
    let journal = place.write("j", "headstack-probe-journal 1\u{1b}]0;owned\u{7}\r\n");
    let coloured = place.at("no\u{1b}[31mx");
    let load = place.write("esc\u{1b}[2J.fio", JOB);
    let titled = place.write("t.toml", "title = \"a\\u001b[31mb\"\n[[drive]]\npreset = \"wd800jd\"\n");
    for args in [
        &["probe", "--drive", "st41601n", "--what", "speed", "--journal", &journal, "--resume"][..],
        &["trace", "stat", &coloured],
        &["drive", "show", &coloured],
        &["sim", "wd800jd", &load],
        &["sim", &titled, &place.at("job.fio")],
        &["sim", "wd800jd", &place.at("job.fio"), "--set", "drive.order=\u{1b}[31m"],
    ] {
        let done = headstack(args);
        let clean = |text: &str| text.chars().all(|c| !c.is_control() || c == '\n');
        assert!(clean(&done.out) && clean(&done.err), "{args:?}: {:?} {:?}", done.out, done.err);
    }
    let shown = printed(&["sim", "wd800jd", &load]);
    assert!(shown.contains("esc\\u001b[2J.fio"), "{shown}");
}

#[test]
fn error_with_a_long_value_is_truncated_to_one_line() {
    let place = Place::new();
    let long = "x".repeat(200_000);
    for (name, text) in [
        ("node.toml", format!("[[disk]]\npath = \"a\"\nname = 3\n[{long}]\n")),
        ("rig.toml", format!("[[drive]]\npreset = \"{long}\"\n")),
    ] {
        let path = place.write(name, &text);
        let args = if name == "node.toml" {
            vec!["serve", &path, "--check=file"]
        } else {
            vec!["rig", "check", &path]
        };
        let done = headstack(&args);
        assert!(
            done.code != 0 && done.err.len() < 4000 && done.err.lines().count() == 1,
            "{}",
            done.err.len()
        );
    }
}

#[test]
fn common_mistakes_are_rejected_in_plain_words() {
    let place = Place::new();
    let job = place.at("job.fio");
    let said = |args: &[&str]| refused(args, 2);
    let seed = said(&["sim", "wd800jd", &job, "--seed", "-3"]);
    assert!(seed.contains("must be a whole number from 0") && !seed.contains("-- -3"), "{seed}");
    assert!(
        said(&["run", "--drive", "wd800jd", "--pattern", "random", "--seed", "-3"]).contains("whole number")
    );
    let depth = said(&["sim", "wd800jd", &job, "--set", "drive.queue_depth=four"]);
    assert!(depth.contains("expected a whole number") && !depth.contains("u32"), "{depth}");
    let far = said(&["sim", "wd800jd", &job, "--set", "drive.xyzzyx=3"]);
    assert!(far.contains("a rig has no key `drive.xyzzyx`") && !far.contains("did you mean"), "{far}");
    let nope = said(&["drive", "show", "nope"]);
    assert!(nope.contains("no drive `nope`") && !nope.contains("did you mean"), "{nope}");
    let folder = said(&["sim", "wd800jd", &job, "--json", "/nonexistent/x"]);
    assert!(
        folder.contains("the folder /nonexistent: No such file") && !folder.contains(".headstack-"),
        "{folder}"
    );
    assert!(said(&["emulate", "wd800jd", "--nbd", "unix:x", "--fault", "power-cut@0s"]).contains("after 0s"));
    let marked = place.write("bom.fio", &format!("\u{feff}{JOB}"));
    assert!(printed(&["sim", "wd800jd", &marked]).contains("20 (20 read)"));
    let unnamed = place.write("bom", &format!("\u{feff}{JOB}"));
    assert!(printed(&["sim", "wd800jd", &unnamed]).contains("fio job"));
}

#[test]
fn misspelled_volume_is_rejected_and_a_file_name_is_noted() {
    let place = Place::new();
    let slip = place.write("slip.fio", "[j]\nfilename=data99\nsize=1m\nnumber_ios=4\n");
    let said = refused(&["sim", "node", &slip], 2);
    assert!(said.contains("`data99` is no volume of the rig; did you mean `data"), "{said}");
    let table = place.write("table.fio", "[j]\nfilename=table\nsize=1m\nnumber_ios=4\n");
    let done = printed(&["sim", "node", &table]);
    assert!(done.contains("`table`: a file on `data0`, the first volume"), "{done}");
    let nameless = place.write("nameless.fio", "[j]\nrw=randread\nnumber_ios=4\n");
    assert!(refused(&["sim", "node", &nameless], 2).contains("filename=/dev/data0 is a volume of the rig"));
    printed(&["sim", "wd800jd", &nameless]);
}

#[test]
fn summary_notes_job_variables_and_capped_queue_depth() {
    let place = Place::new();
    let job = place.write("j.fio", "[j]\nrw=randread\nsize=${SIZE}\niodepth=32\nnumber_ios=50\n");
    let mut command = crate::common::command(&["sim", "wd800jd", &job]);
    let output = command.env("SIZE", "64m").output().expect("the command starts");
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(text.contains("variables: ${SIZE} = 64m"), "{text}");
    assert!(text.contains("`j`: queue depth capped at 1 and not 32, as in fio"), "{text}");
    let gone =
        crate::common::command(&["sim", "wd800jd", &job]).env_remove("SIZE").output().expect("it starts");
    assert!(String::from_utf8_lossy(&gone.stderr).contains("the environment has no variable of that name"));
}

#[test]
fn stream_jobs_of_a_node_also_run_in_the_simulator() {
    let jobs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../jobs");
    for name in ["streams-nbd.fio", "streams-writers.fio", "streams-and-random.fio"] {
        let job = jobs.join(name).to_string_lossy().into_owned();
        let text = printed(&["sim", "wd800jd", &job]);
        assert!(text.contains("IOPS"), "{name}: {text}");
    }
}

#[test]
fn data_file_of_another_disk_is_rejected() {
    let place = Place::new();
    let notes = place.write("notes.txt", "x\n");
    let emulate = |drive: &str, data: &str| {
        headstack(&["emulate", drive, "--data", data, "--speed", "100", "--", "true"])
    };
    let done = emulate("wd800jd", &notes);
    assert_eq!((done.code, place.read("notes.txt")), (2, "x\n".to_string()), "{}", done.err);
    assert!(done.err.contains("it holds 2 bytes and no data of a disk, and wd800jd has"), "{}", done.err);
    let disk = place.at("disk.img");
    assert_eq!(emulate("wd800jd", &disk).code, 0);
    assert_eq!(emulate("wd800jd", &disk).code, 0, "its own");
    let done = emulate("st2000dm006", &disk);
    assert_eq!(done.code, 2, "{}", done.err);
    assert!(done.err.contains("it holds the data of wd800jd"), "{}", done.err);
    // As version 0.1 made them: just the bytes of the disk.
    let marked = fs::OpenOptions::new().write(true).open(&disk).expect("it is ours");
    let bytes = marked.metadata().expect("it is open").len() - 4096;
    marked.set_len(bytes).expect("it is ours");
    drop(marked);
    let done = emulate("wd800jd", &disk);
    assert!(done.code == 0 && done.err.contains("marked as wd800jd's now"), "{}", done.err);
}
