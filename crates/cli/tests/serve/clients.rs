//! Common NBD clients on a node with an emulated disk.

use crate::checked::{MIB, image, verify_by_fio};
use crate::node::Node;
use crate::noise::Noise;
use crate::tools::{folder, have, output, run, text};
use std::fs::File;
use std::io::Read;

#[test]
fn fio_verifies_its_writes_through_a_node() {
    if !have(&["fio"]) {
        return;
    }
    let node = Node::of_quick_disk();
    verify_by_fio(&node.uri());
    node.stop();
}

#[test]
fn nbdcopy_image_reads_back_through_a_node() {
    if !have(&["nbdcopy"]) {
        return;
    }
    let (folder, node) =
        (folder(), Node::start(&["--emulate", "eagle-m2361a", "--set", "disk.speed=1000.0"]));
    let (given, taken) = (folder.path().join("given"), folder.path().join("taken"));
    let bytes = image(&given);
    run("nbdcopy", &["--flush", text(&given), &node.uri()]);
    run("nbdcopy", &[&node.uri(), text(&taken)]);
    let mut found = vec![0; bytes.len()];
    File::open(&taken).and_then(|mut file| file.read_exact(&mut found)).expect("the disk is larger");
    assert!(found == bytes, "other bytes come back");
}

#[test]
fn qemu_img_conversion_through_a_node_is_identical() {
    if !have(&["qemu-img"]) {
        return;
    }
    let (folder, node) =
        (folder(), Node::start(&["--emulate", "eagle-m2361a", "--set", "disk.speed=1000.0"]));
    let (given, taken) = (folder.path().join("given"), folder.path().join("taken"));
    image(&given);
    let uri = node.uri();
    run("qemu-img", &["convert", "-n", "-f", "raw", "-O", "raw", text(&given), &uri]);
    // The disk is larger than the file. qemu-img compare treats the two as identical only if the rest of the disk is zero.
    run("qemu-img", &["compare", "-f", "raw", "-F", "raw", text(&given), &uri]);
    run("qemu-img", &["convert", "-f", "raw", "-O", "qcow2", &uri, text(&taken)]);
    let mut client = node.client();
    let last = client.bytes() - 512;
    client.write(last, &[1; 512], false).expect("the last block is there");
    let differs = output("qemu-img", &["compare", "-f", "raw", "-F", "qcow2", &uri, text(&taken)]);
    assert_eq!(differs.status.code(), Some(1), "the last block differs: {differs:?}");
}

#[test]
fn streams_of_many_clients_read_their_own_bytes() {
    let node = Node::of_quick_disk();
    let apart = (node.client().bytes() / 16).next_multiple_of(MIB as u64) - MIB as u64;
    let noise = |stream: u64| Noise(stream).bytes(2 * MIB);
    std::thread::scope(|scope| {
        for stream in 0..12 {
            let mut client = node.client();
            scope.spawn(move || {
                let bytes = noise(stream);
                for (number, part) in (0..).zip(bytes.chunks(64 << 10)) {
                    client
                        .write(stream * apart + number * (64 << 10), part, false)
                        .expect("it is a good write");
                }
                for (number, part) in (0..).zip(bytes.chunks(64 << 10)) {
                    let found = client.read(stream * apart + number * (64 << 10), 64 << 10);
                    assert!(found.expect("it is a good read") == part, "part {number} of stream {stream}");
                }
            });
        }
    });
    node.stop();
}

/// The number of streams that a node reports.
fn streams_found(said: &str) -> u32 {
    let line =
        said.lines().find_map(|line| line.trim().strip_prefix("streams ")).expect("it says what it found");
    let count = line.split_whitespace().next().expect("it says how many");
    if count == "none" { 0 } else { count.replace(',', "").parse().unwrap_or_else(|_| panic!("{line}")) }
}

/// Runs a program on a node, which may find at most `most` streams. `URI` in an argument is the node's.
fn streams_of(program: &str, arguments: &[&str], most: u32) {
    if !have(&[program]) {
        return;
    }
    let node = Node::start(&["--emulate", "eagle-m2361a", "--set", "disk.speed=1000.0"]);
    let uri = node.uri();
    let arguments: Vec<String> = arguments.iter().map(|argument| argument.replace("URI", &uri)).collect();
    run(program, &arguments.iter().map(String::as_str).collect::<Vec<_>>());
    let found = streams_found(&node.stop());
    assert!(found <= most, "{program} {arguments:?}: {found} streams, where at most {most} are there");
}

#[test]
fn sequential_clients_at_high_queue_depth_form_few_streams() {
    let folder = folder();
    let given = folder.path().join("given");
    std::fs::write(&given, Noise(9).bytes(32 * MIB)).expect("the folder is writable");
    // nbdcopy opens several connections, each of which copies a separate part of the file.
    streams_of("nbdcopy", &["--flush", text(&given), "URI"], 16);
    streams_of("qemu-img", &["convert", "-n", "-f", "raw", "-O", "raw", text(&given), "URI"], 4);
    let fio = ["--name=s", "--ioengine=nbd", "--uri=URI", "--thread", "--size=32m"];
    for load in [
        &["--rw=read", "--bs=256k", "--iodepth=16"],
        &["--rw=read", "--bs=64k", "--iodepth=32"],
        &["--rw=read", "--bs=16k", "--iodepth=8"],
        &["--rw=write", "--bs=256k", "--iodepth=16"],
        &["--rw=write", "--bs=64k", "--iodepth=32"],
    ] {
        streams_of("fio", &[&fio[..], load].concat(), 2);
    }
}

#[test]
fn random_reads_of_a_small_area_form_few_streams() {
    let fio = ["--name=r", "--ioengine=nbd", "--uri=URI", "--thread", "--rw=randread", "--number_ios=2000"];
    for (load, most) in
        [(["--bs=64k", "--iodepth=8", "--size=200m"], 20), (["--bs=16k", "--iodepth=32", "--size=20m"], 20)]
    {
        streams_of("fio", &[&fio[..], &load[..]].concat(), most);
    }
}
