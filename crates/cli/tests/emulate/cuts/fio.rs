//! fio fills one stretch of the disk after another and syncs each. After the cut it verifies the stretches that it had synced.

use super::{LIAR, Power, Witness, caught, live_through, must};
use crate::emulator::Emulator;
use crate::tools::{attempt, folder, have, text};
use std::fs;
use std::ops::Range;

struct Fio {
    /// The safe stretches of the run that the last power cut ended.
    safe: Range<u64>,
}

impl Fio {
    fn new() -> Fio {
        Fio { safe: 0..0 }
    }

    /// Runs fio on stretches of 1 MiB, which begin 1 GiB apart. A stretch is written once in the whole test.
    fn run(emulator: &Emulator, stretches: Range<u64>, how: &str) -> Result<String, String> {
        let folder = folder();
        let path = folder.path().join("job.fio");
        let global = format!(
            "[global]\nioengine=nbd\nuri={}\nrw=randwrite\nbs=4k\nsize=1m\niodepth=16\nverify=crc32c\nverify_fatal=1\n\
             verify_state_save=0\nthread\n{how}\n",
            emulator.uri()
        );
        let jobs = stretches.map(|stretch| format!("[stretch{stretch}]\noffset={stretch}g\n"));
        fs::write(&path, jobs.fold(global, |text, job| text + &job)).expect("the folder is writable");
        attempt("fio", &[text(&path)])
    }
}

impl Witness for Fio {
    const SPEED: &str = "1";
    const MOUNTED: bool = false;

    fn prepare(&mut self, _: &Emulator) {}

    fn work(&mut self, emulator: &Emulator, power: &mut Power) {
        // The stretch that was being written at the last cut is not used again.
        self.safe = self.safe.end + 1..self.safe.end + 1;
        while Fio::run(emulator, self.safe.end..self.safe.end + 1, "do_verify=0\nend_fsync=1").is_ok() {
            self.safe.end += 1;
            power.safe();
        }
    }

    fn check(&mut self, emulator: &Emulator) -> Result<(), String> {
        Fio::run(emulator, self.safe.clone(), "verify_only").map(drop)
    }
}

#[test]
fn fio_data_synced_before_power_cuts_survives() {
    if have(&["fio"]) {
        must(live_through(Fio::new(), 2, 2, None));
    }
}

#[test]
fn fio_exposes_a_disk_that_ignores_flush() {
    if have(&["fio"]) {
        caught(live_through(Fio::new(), 5, 2, LIAR));
    }
}

#[test]
#[ignore = "the long form: make cuts-real"]
fn fio_data_synced_before_40_power_cuts_survives() {
    if have(&["fio"]) {
        must(live_through(Fio::new(), 40, 4, None));
    }
}
