//! Nodes whose disk is a file. After a kill, all flushed data are in the file; after an orderly end, all acknowledged data are.

use crate::node::Node;
use crate::noise::Noise;
use crate::tools::{attempt, folder, have, run, text};
use std::fs;
use std::ops::Range;
use std::path::Path;
use std::thread;
use std::time::Duration;

/// Makes a file that is a disk of 64 MiB. Returns its path.
fn disk(folder: &Path) -> std::path::PathBuf {
    let path = folder.join("disk");
    fs::File::create(&path).and_then(|file| file.set_len(64 << 20)).expect("the folder is writable");
    path
}

/// Runs fio on stretches of 1 MiB: writes blocks of 4 KiB with a checksum in random order, or verifies them, as `how` says.
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

/// Writes with fio to a disk of at least 64 MiB and kills the node `kills` times meanwhile. After each kill, fio verifies what it had flushed.
pub(crate) fn write_through_kills(path: &Path, options: &[&str], kills: u32) {
    let folder = folder();
    let (mut begin, mut noise) = (0, Noise(6));
    for kill in 0..kills {
        let mut node = Node::of_file_with(path, options);
        let (uri, process) = (node.uri(), node.process());
        // The stretch that was being written at the last kill is not used next.
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
        // Begins again at the disk's start before the stretches reach its end.
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
