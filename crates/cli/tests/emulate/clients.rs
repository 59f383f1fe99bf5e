//! Common NBD clients: what they report of an emulated disk, and whether they read what they wrote.

use crate::checked::{MIB, image, verify_by_fio};
use crate::emulator::{Emulator, Setup};
use crate::noise::Noise;
use crate::tools::{folder, have, output, run, text};
use serde_json::Value;
use std::fs::{self, File};
use std::io::Read;
use std::thread;

#[test]
fn nbdinfo_reports_a_rotational_disk_and_its_features() {
    if !have(&["nbdinfo"]) {
        return;
    }
    let emulator = Emulator::start(&Setup { rig: "atlas-10k", ..Setup::default() });
    let found: Value =
        serde_json::from_str(&run("nbdinfo", &["--json", &emulator.uri()])).expect("it prints JSON");
    let export = &found["exports"][0];
    assert_eq!(export["export-size"], emulator.client().bytes(), "{found:#}");
    assert!(
        export["export-size"].as_u64().is_some_and(|bytes| bytes > 9_000_000_000 && bytes % 512 == 0),
        "{found:#}"
    );
    for flag in
        ["is_rotational", "can_flush", "can_fua", "can_multi_conn", "can_trim", "can_zero", "can_cache"]
    {
        assert_eq!(export[flag], true, "{flag} of {found:#}");
    }
    assert_eq!(export["is_read_only"], false);
    assert_eq!(export["description"], "Quantum Atlas 10K, 9.2 GB, 1999, queue depth 1");
    assert_eq!(export["block_size_minimum"], 512, "{found:#}");
    let sizes = ["block_size_preferred", "block_size_maximum"]
        .map(|key| export[key].as_u64().expect("it is a number"));
    assert!(sizes[0].is_power_of_two() && sizes[0] >= 512 && sizes[1] >= 1 << 20, "{found:#}");
    assert_eq!(found["protocol"], "newstyle-fixed");
    assert_eq!(found["structured"], true);
    assert!(
        export["contexts"].as_array().is_some_and(|names| names.contains(&"base:allocation".into())),
        "{found:#}"
    );
    let list: Value = serde_json::from_str(&run("nbdinfo", &["--list", "--json", &emulator.uri()]))
        .expect("it prints JSON");
    assert_eq!(list["exports"].as_array().map(Vec::len), Some(1), "{list:#}");
}

#[test]
fn nbdcopy_image_reads_back_unchanged() {
    if !have(&["nbdcopy", "nbdinfo"]) {
        return;
    }
    let (folder, emulator) = (folder(), Emulator::start(&Setup { rig: "eagle-m2361a", ..Setup::default() }));
    let (given, taken) = (folder.path().join("given"), folder.path().join("taken"));
    let bytes = image(&given);
    run("nbdcopy", &[text(&given), &emulator.uri()]);
    let kept: u64 = extents(&emulator.uri()).iter().filter(|extent| extent["type"] == 0).map(length).sum();
    assert!(kept >= 8 * MIB as u64 && kept < 16 * MIB as u64, "{kept} bytes are said to be kept");
    run("nbdcopy", &[&emulator.uri(), text(&taken)]);
    let mut file = File::open(&taken).expect("nbdcopy made it");
    let mut found = vec![0; bytes.len()];
    file.read_exact(&mut found).expect("the disk is larger");
    assert!(found == bytes, "other bytes come back");
    let mut rest = Vec::new();
    file.read_to_end(&mut rest).expect("it is a file");
    assert_eq!((rest.len() + bytes.len()) as u64, emulator.client().bytes());
    assert!(rest.iter().all(|&byte| byte == 0), "what was never written is not zero");
    emulator.stop();
}

fn extents(uri: &str) -> Vec<Value> {
    let map: Value =
        serde_json::from_str(&run("nbdinfo", &["--map", "--json", uri])).expect("it prints JSON");
    map.as_array().expect("it is a list").clone()
}

fn length(extent: &Value) -> u64 {
    extent["length"].as_u64().expect("it is a number")
}

#[test]
fn qemu_img_conversion_is_identical_in_both_directions() {
    if !have(&["qemu-img"]) {
        return;
    }
    let (folder, emulator) = (folder(), Emulator::start(&Setup { rig: "eagle-m2361a", ..Setup::default() }));
    let (given, taken) = (folder.path().join("given"), folder.path().join("taken"));
    image(&given);
    let uri = emulator.uri();
    run("qemu-img", &["convert", "-n", "-f", "raw", "-O", "raw", text(&given), &uri]);
    // The disk is larger than the file. qemu-img compare treats the two as identical only if the rest of the disk is zero.
    run("qemu-img", &["compare", "-f", "raw", "-F", "raw", text(&given), &uri]);
    run("qemu-img", &["convert", "-f", "raw", "-O", "qcow2", &uri, text(&taken)]);
    run("qemu-img", &["compare", "-f", "raw", "-F", "qcow2", &uri, text(&taken)]);
    let mut client = emulator.client();
    let last = client.bytes() - 512;
    client.write(last, &[1; 512], false).expect("the last block is there");
    let differs = output("qemu-img", &["compare", "-f", "raw", "-F", "qcow2", &uri, text(&taken)]);
    assert_eq!(
        differs.status.code(),
        Some(1),
        "the last block differs: {}",
        String::from_utf8_lossy(&differs.stdout)
    );
}

#[test]
fn qemu_io_reads_back_writes_zeros_and_discards() {
    if !have(&["qemu-io"]) {
        return;
    }
    let emulator = Emulator::start(&Setup::default());
    let script = [
        "write -P 0x11 0 1M",
        "write -f -P 0x22 64k 4k",
        "write -P 0x33 512 512",
        "write -z 128k 64k",
        "write -z -u 256k 64k",
        "write -z -f 384k 64k",
        "discard 512k 64k",
        "write -P 0x44 1M 2M",
        "flush",
        "read -P 0x11 0 512",
        "read -P 0x33 512 512",
        "read -P 0x11 1k 63k",
        "read -P 0x22 64k 4k",
        "read -P 0x11 68k 60k",
        "read -P 0x00 128k 64k",
        "read -P 0x11 192k 64k",
        "read -P 0x00 256k 64k",
        "read -P 0x00 384k 64k",
        "read -P 0x00 512k 64k",
        "read -P 0x11 576k 448k",
        "read -P 0x44 1M 2M",
        "read -P 0x00 3M 1M",
        "aio_write -P 0x55 4M 1M",
        "aio_write -f -P 0x66 8M 64k",
        "aio_read -P 0x44 1M 1M",
        "aio_flush",
        "read -P 0x55 4M 1M",
        "read -P 0x66 8M 64k",
        "aio_flush",
    ];
    let (good, said) = qemu_io(&emulator.uri(), &script);
    assert!(good, "{said}");
}

#[test]
fn fio_verifies_its_writes_over_several_connections() {
    if !have(&["fio"]) {
        return;
    }
    let emulator = Emulator::start(&Setup::default());
    verify_by_fio(&emulator.uri());
}

#[test]
fn fio_verifies_writes_at_the_pointers_of_a_host_managed_disk() {
    if !have(&["fio"]) {
        return;
    }
    let emulator = Emulator::start(&Setup { rig: "ultrastar-hc620", ..Setup::default() });
    let folder = folder();
    let path = folder.path().join("job.fio");
    let job = format!(
        "[zones]\nioengine=nbd\nuri={}\nzonemode=zbd\nzonesize=256m\nmax_open_zones=1\nrw=randwrite\nbs=256k\n\
         iodepth=8\noffset=131g\nsize=1g\nio_size=288m\nverify=crc32c\nverify_fatal=1\nverify_state_save=0\n",
        emulator.uri()
    );
    fs::write(&path, job).expect("the folder is writable");
    let found = run("fio", &["--output-format=json", text(&path)]);
    let found: Value =
        serde_json::from_str(&found[found.find('{').expect("it prints JSON")..]).expect("it is JSON");
    let job = &found["jobs"][0];
    assert_eq!(job["error"], 0, "{job:#}");
    for kind in ["read", "write"] {
        assert_eq!(job[kind]["io_bytes"], 288 * MIB, "{kind} of {job:#}");
    }
    // In a second run fio assumes that the zones are empty, and the disk refuses a write that is not at a write pointer.
    assert!(!output("fio", &[text(&path)]).status.success());
}

/// Runs qemu-io with these steps. Returns whether all succeeded, and the output.
fn qemu_io(uri: &str, steps: &[&str]) -> (bool, String) {
    let mut args = vec!["-f", "raw"];
    args.extend(steps.iter().flat_map(|step| ["-c", step]));
    args.push(uri);
    let done = output("qemu-io", &args);
    let said = [done.stdout, done.stderr].map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).concat();
    (done.status.success() && !said.contains("failed") && !said.contains("error"), said)
}

#[test]
fn disks_of_one_process_hold_separate_data() {
    if !have(&["nbdinfo", "qemu-io"]) {
        return;
    }
    let emulator = Emulator::start(&Setup { rig: "atlas-10k hp-c2247a", ..Setup::default() });
    let list: Value = serde_json::from_str(&run("nbdinfo", &["--list", "--json", &emulator.uri()]))
        .expect("it prints JSON");
    let exports = list["exports"].as_array().expect("it is a list");
    let names: Vec<&str> = exports.iter().filter_map(|export| export["export-name"].as_str()).collect();
    assert_eq!(names, ["disk0", "disk1"], "{list:#}");
    let bytes = [0, 1].map(|disk: usize| exports[disk]["export-size"].as_u64().expect("it is a number"));
    assert!(bytes[0] == emulator.client().bytes() && bytes[1] < bytes[0], "{list:#}");
    let [first, second] = ["disk0", "disk1"].map(|name| emulator.uri_of(name));
    for (uri, steps) in [
        (&first, ["write -P 0x11 0 64k", "read -P 0x11 0 64k"]),
        (&second, ["read -P 0x00 0 64k", "write -P 0x22 0 64k"]),
        (&first, ["read -P 0x11 0 64k", "flush"]),
        (&second, ["read -P 0x22 0 64k", "read -P 0x00 64k 64k"]),
    ] {
        let (good, said) = qemu_io(uri, &steps);
        assert!(good, "{uri}: {said}");
    }
    let (good, said) = qemu_io(&emulator.uri_of("disk2"), &["read 0 512"]);
    assert!(!good, "there is no such disk: {said}");
}

#[test]
fn medium_errors_are_reported_until_the_blocks_are_written() {
    if !have(&["qemu-io"]) {
        return;
    }
    let emulator = Emulator::start(&Setup { fault: Some("medium-error@2048+8"), ..Setup::default() });
    let uri = emulator.uri();
    let (good, said) = qemu_io(&uri, &["write -P 0x11 0 64k", "read -P 0x11 0 64k", "read -P 0 1028k 4k"]);
    assert!(good, "other blocks can be read: {said}");
    let (good, said) = qemu_io(&uri, &["read 1020k 64k"]);
    assert!(!good && said.contains("Input/output error"), "{said}");
    let (good, said) = qemu_io(&uri, &["write -f -P 0x22 1M 4k", "read -P 0x22 1M 4k", "read 1020k 64k"]);
    assert!(good, "blocks that were written can be read: {said}");
}

#[test]
fn writes_are_visible_across_connections() {
    let emulator = Emulator::start(&Setup::default());
    let (connections, blocks) = (16, 32);
    let place = |connection: u64, block: u64| (block * connections + connection) * 4096;
    let data = |connection: u64| Noise(connection).bytes(4096);
    thread::scope(|scope| {
        for connection in 0..connections {
            let mut client = emulator.client();
            scope.spawn(move || {
                for block in 0..blocks {
                    client
                        .write(place(connection, block), &data(connection), false)
                        .expect("it is a good write");
                }
                client.flush().expect("it is a good flush");
            });
        }
    });
    thread::scope(|scope| {
        for connection in 0..connections {
            let mut client = emulator.client();
            let other = (connection + 5) % connections;
            scope.spawn(move || {
                for block in 0..blocks {
                    let found = client.read(place(other, block), 4096).expect("it is a good read");
                    assert!(found == data(other), "block {block} of connection {other}");
                }
            });
        }
    });
}

#[test]
fn data_survives_a_restart_without_a_flush() {
    let folder = folder();
    let path = folder.path().join("data");
    let setup = Setup { data: Some(&path), ..Setup::default() };
    let (first, second) = (Noise(1).bytes(8192), Noise(2).bytes(4096));
    let emulator = Emulator::start(&setup);
    let mut client = emulator.client();
    let end = client.bytes() - 4096;
    client.write(4096, &first, false).expect("it is a good write");
    client.write(end, &second, false).expect("it is a good write");
    drop(client);
    // No flush is needed: on SIGTERM the emulator destages its disk's write cache before it ends.
    emulator.stop();
    let emulator = Emulator::start(&setup);
    let mut client = emulator.client();
    assert!(client.read(4096, 8192).expect("it is a good read") == first);
    assert!(client.read(end, 4096).expect("it is a good read") == second);
    assert!(client.read(end - 4096, 4096).expect("it is a good read").iter().all(|&byte| byte == 0));
}
