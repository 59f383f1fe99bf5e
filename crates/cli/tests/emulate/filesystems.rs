//! File systems on a loop device over the file (FUSE) of an emulated disk.

use crate::device::{Loop, Mount};
use crate::emulator::{Emulator, Setup};
use crate::tools::{have_loops_and, run, text};
use std::path::Path;

/// The folder with all sources of this workspace.
fn sources() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("crates are in a folder")
}

/// Copies all sources to a new file system, unmounts and checks it, mounts it again and compares the copy, and checks it again.
fn copied(kind: &str, make: &[&str], check: &[&str]) {
    if !have_loops_and(&[make[0], check[0], "cp", "diff"]) {
        return;
    }
    let emulator = Emulator::start(&Setup { rig: "atlas-10k", mounted: true, ..Setup::default() });
    let device = Loop::over(&emulator.file());
    let on_device = |args: &[&str]| run(args[0], &[&args[1..], &[device.device()]].concat());
    on_device(make);
    let mount = Mount::new(kind, device.device());
    let copy = mount.path().join("crates");
    run("cp", &["-r", text(sources()), text(&copy)]);
    mount.unmount();
    on_device(check);
    let mount = Mount::new(kind, device.device());
    run("diff", &["-r", "--no-dereference", text(sources()), text(&mount.path().join("crates"))]);
    mount.unmount();
    on_device(check);
}

#[test]
fn ext4_keeps_a_source_tree() {
    copied("ext4", &["mkfs.ext4", "-q", "-F"], &["e2fsck", "-f", "-n"]);
}

#[test]
fn xfs_keeps_a_source_tree() {
    copied("xfs", &["mkfs.xfs", "-q", "-f"], &["xfs_repair", "-n"]);
}

#[test]
fn nbd_and_loop_device_see_each_others_writes() {
    if !have_loops_and(&["dd"]) {
        return;
    }
    let emulator = Emulator::start(&Setup { mounted: true, ..Setup::default() });
    let mut client = emulator.client();
    client.write(1 << 20, &[0x5a; 4096], false).expect("it is a good write");
    let device = Loop::over(&emulator.file());
    let read = ["bs=4096", "skip=256", "count=1", "iflag=direct", "status=none"];
    let found = run("dd", &[&[&*format!("if={}", device.device())], read.as_slice()].concat());
    assert!(found.len() == 4096 && found.bytes().all(|byte| byte == 0x5a));
    let write = ["if=/dev/zero", "bs=4096", "seek=256", "count=1", "oflag=direct", "status=none"];
    run("dd", &[&[&*format!("of={}", device.device())], write.as_slice()].concat());
    assert!(client.read(1 << 20, 4096).expect("it is a good read").iter().all(|&byte| byte == 0));
}
