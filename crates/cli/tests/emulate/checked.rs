//! Images and fio jobs that verify that the bytes read are the bytes written. The tests of emulated disks and those of nodes use them.

use crate::noise::Noise;
use crate::tools::{folder, run, text};
use serde_json::Value;
use std::fs;
use std::path::Path;

pub(crate) const MIB: usize = 1 << 20;

/// Writes a file with four runs of random data and zeros between them. Returns its bytes.
pub(crate) fn image(path: &Path) -> Vec<u8> {
    let mut noise = Noise(7);
    let mut bytes = vec![0; 24 * MIB];
    for (place, length) in
        [(0, 3 * MIB), (7 * MIB + 4096, 64 << 10), (15 * MIB, 5 * MIB), (24 * MIB - 4096, 4096)]
    {
        bytes[place..place + length].copy_from_slice(&noise.bytes(length));
    }
    fs::write(path, &bytes).expect("the folder is writable");
    bytes
}

/// Runs fio with four concurrent jobs that write and verify: two sequential and two random ones.
pub(crate) fn verify_by_fio(uri: &str) {
    let folder = folder();
    let job = format!(
        "[global]\nioengine=nbd\nuri={}\nbsrange=512-64k\niodepth=16\nsize=8m\n\
         verify=crc32c\nverify_fatal=1\nverify_state_save=0\nverify_backlog=64\nfsync=50\n",
        uri
    );
    let parts = (0..4).map(|part| {
        let kind = if part % 2 == 0 { "randwrite" } else { "write" };
        format!("[part{part}]\nrw={kind}\noffset={}m\n", part * 64)
    });
    let path = folder.path().join("job.fio");
    fs::write(&path, job + &parts.collect::<String>()).expect("the folder is writable");
    let found = run("fio", &["--output-format=json", text(&path)]);
    let found: Value =
        serde_json::from_str(&found[found.find('{').expect("it prints JSON")..]).expect("it is JSON");
    for job in found["jobs"].as_array().expect("it is a list") {
        assert_eq!(job["error"], 0, "{job:#}");
        for kind in ["read", "write"] {
            assert_eq!(job[kind]["io_bytes"], 8 * MIB, "{kind} of {job:#}");
        }
    }
}
