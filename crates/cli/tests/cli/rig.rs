//! `headstack rig`: what it lists, shows and refuses.

use crate::common::{headstack, json, printed, refused};
use std::fs;

#[test]
fn list_prints_headings_and_the_single_rig() {
    let output = printed(&["rig", "list"]);
    for line in ["single ", "name "] {
        assert!(output.contains(line), "{output}");
    }
}

#[test]
fn json_list_gives_drives_and_volumes() {
    let list = json(&["rig", "list", "--json"]);
    let rigs = list.as_array().expect("it is a list");
    let raid5 = rigs.iter().find(|rig| rig["name"] == "raid5").expect("it is shipped");
    assert_eq!(raid5["drives"][0], "exos-x18");
    assert_eq!(raid5["volumes"].as_array().map(Vec::len), Some(1));
    assert!(raid5["volumes"][0]["bytes"].as_u64() > Some(70_000_000_000_000));
}

#[test]
fn show_prints_volumes_and_applied_settings() {
    let output =
        printed(&["rig", "show", "single", "--set", "drive.order=c-look", "--set", "drive.queue_depth=4"]);
    let row: Vec<&str> = output.lines().last().expect("a row").split_whitespace().collect();
    assert_eq!(row[..4], ["disk", "exos-x18", "c-look", "4"]);
    let output = json(&["rig", "show", "atlas-10k", "--json", "--set", "host.elevator=noop"]);
    assert_eq!(output["drive"][0]["mechanics"]["rpm"], 10025.0);
    assert_eq!(output["host"]["queue"]["elevator"], "noop");
}

#[test]
fn rig_printed_as_toml_is_a_valid_rig_file() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("whole.toml");
    let whole = printed(&["rig", "show", "single", "--toml", "--set", "drive.count=3"]);
    fs::write(&file, &whole).expect("the folder is writable");
    let file = file.to_str().expect("the path is text");
    assert_eq!(printed(&["rig", "check", file]), format!("ok: {file}: 3 volumes\n"));
    assert_eq!(printed(&["rig", "show", file, "--toml"]), whole);
}

#[test]
fn drive_file_serves_as_a_rig_and_as_an_adjacent_preset() {
    let folder = tempfile::tempdir().expect("a folder");
    let drive = folder.path().join("mine.toml");
    let text = include_str!("../../../../drives/atlas-10k.toml");
    fs::write(&drive, text).expect("the folder is writable");
    assert!(printed(&["rig", "check", drive.to_str().expect("text")]).ends_with("1 volume\n"));
    let rig = folder.path().join("rig.toml");
    fs::write(&rig, "[drive]\npreset = \"mine.toml\"\ncount = 2\n").expect("the folder is writable");
    assert!(printed(&["rig", "check", rig.to_str().expect("text")]).ends_with("2 volumes\n"));
}

#[test]
fn bad_rig_or_setting_is_rejected_in_one_line() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("bad.toml");
    let said = |text: &str| {
        fs::write(&file, text).expect("the folder is writable");
        let file = file.to_str().expect("the path is text");
        refused(&["rig", "check", file], 1).replace(file, "FILE")
    };
    assert_eq!(
        said("[drive]\npreset = \"none.toml\"\n").replace(folder.path().to_str().expect("text"), "FOLDER"),
        "headstack: FILE:2: drive.preset: FOLDER/none.toml: No such file or directory (os error 2)"
    );
    assert_eq!(
        said(
            "[drive]\npreset = \"atlas-10k\"\ncount = 9\n[array]\norganisation = \"raid-6\"\ndrives = [\"disk0\"]\n"
        ),
        "headstack: FILE:6: array.drives: `raid-6` needs 4 drives at least, and 1 are named"
    );
    let set = |setting: &str| refused(&["rig", "show", "single", "--set", setting], 2);
    assert_eq!(
        set("drive.queue.dept=3"),
        "headstack: rigs/single.toml: drive.queue.dept=3: a rig has no key `drive.queue.dept`; did you mean `drive.queue.depth`?"
    );
    assert_eq!(
        set("drive.queue_depth=x"),
        "headstack: rigs/single.toml: drive.queue.depth: invalid type: string \"x\", expected a whole number from 0 on"
    );
    assert_eq!(
        set("drive.order"),
        "headstack: --set drive.order: must be KEY=VALUE, such as drive.order=sptf"
    );
    assert_eq!(
        refused(&["rig", "show", "singel"], 2),
        "headstack: rigs: no rig or drive `singel`; did you mean `single`?"
    );
}

/// A folder with the small set-up of the model's tests.
fn small_setup() -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    let specs = folder.path().join("specs");
    fs::create_dir(&specs).expect("the folder is writable");
    let write = |path: &std::path::Path, text: &str| fs::write(path, text).expect("the folder is writable");
    fs::create_dir(folder.path().join("rigs")).expect("the folder is writable");
    write(&folder.path().join("rigs/setup.parv"), include_str!("../../../disksim/tests/small/setup.parv"));
    write(&specs.join("drive.diskspecs"), include_str!("../../../disksim/tests/small/drive.diskspecs"));
    write(&specs.join("drive.model"), include_str!("../../../disksim/tests/small/drive.model"));
    write(&specs.join("drive.seek"), include_str!("../../../disksim/tests/small/drive.seek"));
    folder
}

#[test]
fn imported_setup_becomes_a_rig_file_and_a_load_file() {
    let folder = small_setup();
    let path = |name: &str| folder.path().join(name).to_str().expect("text").to_string();
    let done = headstack(&["rig", "import", &path("rigs/setup.parv"), "-o", &path("mine.toml")]);
    assert_eq!((done.code, done.out.as_str()), (0, ""), "{}", done.err);
    assert!(done.err.contains("setup.parv:1: disksim_global Global: "), "{}", done.err);
    assert!(done.err.lines().all(|line| line.starts_with("not carried over: ")), "{}", done.err);
    let load = fs::read_to_string(path("mine-load.toml")).expect("the load is written next to the rig");
    assert!(load.contains("volumes = [\"org0\"]"), "{load}");
    let shown = printed(&["rig", "show", &path("mine.toml")]);
    assert!(shown.contains("org0    raid-5"), "{shown}");
    assert!(printed(&["rig", "check", &path("mine.toml")]).starts_with("ok: "));
    fs::remove_dir_all(folder.path().join("specs")).expect("the folder is writable");
    let said = refused(&["rig", "import", &path("rigs/setup.parv")], 2);
    assert!(
        said.ends_with(
            "setup.parv:10: source: drive.diskspecs: no such file (--search names folders to look in)"
        ),
        "{said}"
    );
}

#[test]
fn rig_show_prints_the_ranges_of_a_disk_with_two_arms() {
    let shown = printed(&["rig", "show", "exos-2x18-sata"]);
    let ranges = shown.split("Concurrent positioning ranges of disk").nth(1).expect("it has two");
    let rows: Vec<Vec<&str>> = ranges.lines().map(|line| line.split_whitespace().collect()).collect();
    assert!(rows.contains(&vec!["0", "1", "0", "17,578,328,064"]), "{shown}");
    assert!(rows.contains(&vec!["1", "1", "17,578,328,064", "17,578,328,064"]), "{shown}");
    assert!(!printed(&["rig", "show", "raid5"]).contains("Concurrent positioning"));
}
