//! Power cuts of an emulated disk with real clients: data that were acknowledged as safe must be there afterwards, and a disk that ignores
//! FLUSH must be detected.
//!
//! Each kind of client is a [`Witness`]. One disk is used through all cuts of a test. After a cut its data file holds what was on the media.

mod ext4;
mod fio;
mod sectors;
mod sqlite;

use crate::device::{Loop, Mount};
use crate::emulator::{Emulator, Setup};
use crate::noise::Noise;
use crate::tools::folder;
use std::thread::{self, JoinHandle};
use std::time::Duration;

/// A client that records which of its data are safe.
trait Witness {
    /// The factor by which its disk is faster than a real one.
    const SPEED: &str;
    /// Whether it uses the mounted file of the disk.
    const MOUNTED: bool;
    /// Prepares a new disk, for example with a file system.
    fn prepare(&mut self, emulator: &Emulator);
    /// Writes until the power fails. Calls [`Power::safe`] after each step whose data are safe.
    fn work(&mut self, emulator: &Emulator, power: &mut Power);
    /// Checks that all safe data are there. The error names what is not.
    fn check(&mut self, emulator: &Emulator) -> Result<(), String>;
}

/// The power supply. It fails `moments` after the witness has reported `left` times that something is safe.
struct Power {
    left: u64,
    moments: Duration,
    cut: Option<Box<dyn FnOnce() + Send>>,
    thread: Option<JoinHandle<()>>,
}

impl Power {
    fn new(left: u64, moments: Duration, cut: impl FnOnce() + Send + 'static) -> Power {
        Power { left, moments, cut: Some(Box::new(cut)), thread: None }
    }

    /// Records that something more is safe, and starts the cut if it is the last before it.
    fn safe(&mut self) {
        self.left = self.left.saturating_sub(1);
        if self.left > 0 {
            return;
        }
        if let Some(cut) = self.cut.take() {
            let moments = self.moments;
            self.thread = Some(thread::spawn(move || {
                thread::sleep(moments);
                cut();
            }));
        }
    }
}

/// Lets a client work and cuts the power `cuts` times: each time after 1 to `most` reports that something is safe, immediately or up to
/// 100 ms later.
fn live_through<W: Witness>(mut witness: W, cuts: u64, most: u64, fault: Option<&str>) -> Result<(), String> {
    let folder = folder();
    let data = folder.path().join("data");
    let setup = Setup { data: Some(&data), speed: W::SPEED, mounted: W::MOUNTED, ..Setup::default() };
    let emulator = Emulator::start(&setup);
    witness.prepare(&emulator);
    emulator.stop();
    let mut noise = Noise(most);
    for cut in 0..cuts {
        let emulator = Emulator::start(&Setup { fault, ..setup });
        // Every second cut comes immediately, when the write cache has just been flushed; the others come while more writes are in flight.
        let moments = Duration::from_micros(if cut % 2 == 0 { 0 } else { noise.below(100_000) });
        let mut power = Power::new(1 + noise.below(most), moments, emulator.cutter());
        witness.work(&emulator, &mut power);
        let cutter = power
            .thread
            .take()
            .ok_or_else(|| format!("it ended before its power was cut: {}", emulator.said()))?;
        cutter.join().expect("a signal is sent without a panic");
        emulator.gone();
        let emulator = Emulator::start(&setup);
        witness.check(&emulator).map_err(|lost| format!("after cut {cut}: {lost}"))?;
        emulator.stop();
    }
    Ok(())
}

/// A mounted file system on a loop device over the disk's file.
struct Disk {
    // The fields are dropped in this order: the mount before its device.
    mount: Mount,
    device: Loop,
}

impl Disk {
    fn mount(emulator: &Emulator) -> Result<Disk, String> {
        let device = Loop::over(&emulator.file());
        Ok(Disk { mount: Mount::attempt("ext4", device.device())?, device })
    }
}

/// Panics if safe data were lost.
fn must(outcome: Result<(), String>) {
    outcome.unwrap_or_else(|lost| panic!("{lost}"));
}

/// Panics unless a loss was found.
fn caught(outcome: Result<(), String>) {
    let lost = outcome.expect_err("a disk that ignores FLUSH loses what is safe");
    eprintln!("caught {lost}");
}

/// The fault of a disk that acknowledges FLUSH without writing its cache to the media.
const LIAR: Option<&str> = Some("ignore-flush");
