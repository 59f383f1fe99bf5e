//! Nodes over a file that are killed, or end in an orderly way: what was flushed is there, or all that was acknowledged.

use crate::node::Node;
use crate::noise::Noise;
use crate::tools::{attempt, folder, have, run, text};
use std::fs;
use std::ops::Range;
use std::path::Path;
use std::thread;
use std::time::Duration;

/// A file that is a disk of 64 MiB.
fn disk(folder: &Path) -> std::path::PathBuf {
    let path = folder.join("disk");
    fs::File::create(&path).and_then(|file| file.set_len(64 << 20)).expect("the folder is writable");
    path
}

/// Writes, or verifies, stretches of a mebibyte each by fio, at random, with each block's checksum in it.
fn fio(uri: &str, folder: &Path, stretches: Range<u64>, how: &str) -> Result<String, String> {
    let path = folder.join("job.fio");
    let global = format!(
        "[global]\nioengine=nbd\nuri={uri}\nrw=randwrite\nbs=4k\nsize=1m\niodepth=16\nverify=crc32c\nverify_fatal=1\n\
         verify_state_save=0\nthread\n{how}\n"
    );
    let jobs = stretches.map(|stretch| format!("[stretch{stretch}]\noffset={stretch}m\n"));
    fs::write(&path, jobs.fold(global, |text, job| text + &job)).expect("the folder is writable");
    attempt("fio", &[text(&path)])
}

#[test]
fn fio_data_flushed_before_node_kills_survives() {
    if have(&["fio"]) {
        let folder = folder();
        write_through_kills(&disk(folder.path()), &[], 5);
    }
}

/// Writes by fio to a disk of 64 MiB, and kills the node as often in the middle of it; what was flushed before must be there after each.
pub(crate) fn write_through_kills(path: &Path, options: &[&str], kills: u32) {
    let folder = folder();
    let (mut begin, mut noise) = (0, Noise(6));
    for kill in 0..kills {
        let mut node = Node::of_file_with(path, options);
        let (uri, process) = (node.uri(), node.process());
        // The stretch that the last kill met is not written again.
        let mut next = begin + 1;
        let mut killer = None;
        // Not `fsync` too: with it fio 3.33 may omit the final flush while an earlier one is in flight.
        while fio(&uri, folder.path(), next..next + 1, "do_verify=0\nend_fsync=1").is_ok() {
            next += 1;
            if next == begin + 3 {
                let moments = Duration::from_millis(noise.below(120));
                killer = Some(thread::spawn(move || {
                    thread::sleep(moments);
                    run("sh", &["-c", &format!("kill -KILL {process}")]);
                }));
            }
            assert!(next < begin + 10, "the node is not killed");
        }
        killer.expect("two stretches were written").join().expect("it is a running process");
        assert!(node.ended().code().is_none(), "it was killed");
        drop(node);
        let node = Node::of_file_with(path, options);
        let written = begin + 1..next;
        fio(&node.uri(), folder.path(), written.clone(), "verify_only")
            .unwrap_or_else(|lost| panic!("after kill {kill}, {written:?} were flushed: {lost}"));
        // The disk has room for 60 stretches, which are written again.
        begin = if next > 45 { 0 } else { next };
    }
}

#[test]
fn acknowledged_writes_survive_an_orderly_shutdown() {
    let folder = folder();
    let path = disk(folder.path());
    let bytes = Noise(8).bytes(3 << 20);
    let node = Node::of_file(&path);
    let mut client = node.client();
    for (number, part) in (0..).zip(bytes.chunks(32 << 10)) {
        client.write(number * (32 << 10), part, false).expect("it is a good write");
    }
    node.stop();
    let found = fs::read(&path).expect("it is a file");
    assert!(found[..bytes.len()] == bytes, "a write that was answered is not there");
}
