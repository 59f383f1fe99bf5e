//! `make install`: the command, and the units of systemd that start it.

use crate::common::printed;
use crate::tools::{have, output, run, text};
use headstack_prerequisites::PROGRAM_FOLDERS;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

const UNITS: [&str; 2] = ["headstack.service", "headstack.socket"];

/// Installs the command of this test, as though it had just been built, and gives the folder.
fn installed() -> tempfile::TempDir {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let folder = tempfile::tempdir().expect("there is room for a folder");
    let target = folder.path().join("target");
    fs::create_dir_all(target.join("release")).expect("there is room for a folder");
    fs::copy(env!("CARGO_BIN_EXE_headstack"), target.join("release/headstack")).expect("there is room");
    let prefix = format!("PREFIX={}", folder.path().join("local").display());
    let target = format!("CARGO_TARGET_DIR={}", target.display());
    run("env", &[&target, "make", "--directory", text(&root), "install", "CARGO=true", &prefix]);
    folder
}

#[test]
fn install_places_the_stripped_binary_and_units_in_the_prefix() {
    if !have(&["make", "install", "strip"]) {
        return;
    }
    let folder = installed();
    let prefix = folder.path().join("local");
    let command = prefix.join("bin/headstack");
    let mode = fs::metadata(&command).expect("it was installed").permissions().mode();
    assert_eq!(mode & 0o777, 0o755);
    let built = fs::metadata(env!("CARGO_BIN_EXE_headstack")).expect("it was built").len();
    assert!(fs::metadata(&command).expect("it was installed").len() < built, "its symbols are still there");
    assert!(run(text(&command), &["--version"]).starts_with("headstack "));
    let service =
        fs::read_to_string(prefix.join("lib/systemd/system/headstack.service")).expect("it is there");
    let start = format!("ExecStart={} serve /etc/headstack/node.toml", command.display());
    assert!(service.lines().any(|line| line == start), "{service}");
}

#[test]
fn systemd_accepts_the_installed_units() {
    if !have(&["make", "install", "strip", "systemd-analyze"]) {
        return;
    }
    let folder = installed();
    let units = UNITS.map(|unit| folder.path().join("local/lib/systemd/system").join(unit));
    let verified = output("systemd-analyze", &["verify", text(&units[0]), text(&units[1])]);
    // Unknown keys and unreadable values are reported on standard error alone.
    let reported = String::from_utf8_lossy(&verified.stderr);
    let wrong: Vec<&str> = reported.lines().filter(|line| line.contains("headstack")).collect();
    assert!(verified.status.success() && wrong.is_empty(), "{reported}");
}

#[test]
fn example_node_file_of_the_package_is_valid() {
    let example = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../contrib/debian/node.toml");
    let checked = printed(&["serve", text(&example), "--check=file"]);
    assert!(checked.starts_with("ok: 1 disk and 1 export\n"), "{checked}");
}

/// A file of the repository.
fn repository_file(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(name)
}

#[test]
fn node_file_of_the_kubernetes_recipe_is_valid() {
    let recipe =
        fs::read_to_string(repository_file("contrib/kubernetes/headstack.yaml")).expect("it is there");
    let lines = recipe.lines().skip_while(|line| *line != "  node.toml: |").skip(1);
    let lines = lines.take_while(|line| *line != "---").map(|line| line.strip_prefix("    ").unwrap_or(line));
    let node: String = lines.map(|line| format!("{line}\n")).collect();
    let folder = tempfile::tempdir().expect("there is room for a folder");
    let path = folder.path().join("node.toml");
    fs::write(&path, &node).expect("the folder is writable");
    let checked = printed(&["serve", text(&path), "--check=file"]);
    assert!(checked.starts_with("ok: 1 disk and 1 export\n"), "{checked}");
    let device =
        recipe.lines().find_map(|line| line.trim().strip_prefix("devicePath: ")).expect("it has one");
    assert!(node.contains(&format!("path = \"{device}\"")), "the container's device is the node's: {node}");
    for port in ["10809", "9100"] {
        assert!(recipe.contains(&format!("containerPort: {port}\n")), "{port}");
        assert!(node.contains(&format!("\"0.0.0.0:{port}\"")), "{port}: {node}");
    }
}

#[test]
fn qemu_example_passes_the_emulated_disk_with_its_speed() {
    let folder = tempfile::tempdir().expect("there is room for a folder");
    let qemu = folder.path().join("qemu-system-x86_64");
    fs::write(&qemu, "#!/bin/sh\nprintf '%s\\n' \"$@\"\n").expect("the folder is writable");
    fs::set_permissions(&qemu, fs::Permissions::from_mode(0o755)).expect("it is ours");
    let path = format!("{}:{PROGRAM_FOLDERS}", text(folder.path()));
    for (device, machine) in [("scsi-hd", "virtio-scsi-pci"), ("ide-hd", "q35")] {
        let mut example = Command::new(repository_file("contrib/qemu/emulated-disk"));
        example.args(["wd800jd", "7200", "-m", "512"]).env("PATH", &path).env("DEVICE", device);
        let done = example.env("HEADSTACK", env!("CARGO_BIN_EXE_headstack")).output().expect("it starts");
        let out = String::from_utf8_lossy(&done.stdout);
        assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
        let has = |line: &str| out.lines().any(|found| found == line);
        assert!(
            has(&format!("{device},drive=emulated,rotation_rate=7200")) && has(machine) && has("512"),
            "{out}"
        );
        let drive =
            out.lines().find(|line| line.starts_with("if=none,id=emulated,")).expect("it has a drive");
        assert!(drive.contains("file=nbd+unix:///disk0?socket=/"), "{drive}");
    }
}

#[test]
fn systemd_accepts_the_units_of_the_package() {
    if !have(&["systemd-analyze"]) {
        return;
    }
    let folder = tempfile::tempdir().expect("there is room for a folder");
    for name in ["headstack-serve", "headstack-emulate"] {
        let source =
            Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("../../contrib/debian/{name}@.service"));
        let unit = fs::read_to_string(source).expect("it is there");
        // systemd requires that the command exists.
        let unit = unit.replace("/usr/bin/headstack", env!("CARGO_BIN_EXE_headstack"));
        let path = folder.path().join(format!("{name}@example.service"));
        fs::write(&path, unit).expect("the folder is writable");
        let verified = output("systemd-analyze", &["verify", "--man=no", text(&path)]);
        // Unknown keys and unreadable values are reported on standard error alone.
        let reported = String::from_utf8_lossy(&verified.stderr);
        assert!(verified.status.success() && !reported.contains("headstack"), "{reported}");
    }
}
