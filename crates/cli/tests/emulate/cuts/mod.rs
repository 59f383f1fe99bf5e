//! Real power cuts: data that was acknowledged as safe must be there afterwards, and a disk that ignores FLUSH must be detected.
//!
//! Each kind of client is a [`Witness`]. One disk is used through all cuts of a test; its data file is what was on the media.

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

/// A client that knows what is safe.
trait Witness {
    /// How many times faster than real its disk is.
    const SPEED: &str;
    /// Whether it uses the disk as a file.
    const MOUNTED: bool;
    /// Makes a new disk ready.
    fn prepare(&mut self, emulator: &Emulator);
    /// Writes until the power fails, and reports everything that is safe from then on.
    fn work(&mut self, emulator: &Emulator, power: &mut Power);
    /// Whether all that is safe is there, or what is not.
    fn check(&mut self, emulator: &Emulator) -> Result<(), String>;
}

/// The power supply: it fails some moments after a number of things are safe.
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

    /// Something more is safe.
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

/// Lets a client work and cuts the power `cuts` times. At most `most` things are safe by each cut, and another one is in progress.
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
        // Every other time at once, when the cache has just written what it had to; else while more is in progress.
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

/// A file system on a disk that is a file.
struct Disk {
    // Dropped in this order.
    mount: Mount,
    device: Loop,
}

impl Disk {
    fn mount(emulator: &Emulator) -> Result<Disk, String> {
        let device = Loop::over(&emulator.file());
        Ok(Disk { mount: Mount::attempt("ext4", device.device())?, device })
    }
}

/// Panics where something that was safe is lost.
fn must(outcome: Result<(), String>) {
    outcome.unwrap_or_else(|lost| panic!("{lost}"));
}

/// Panics unless a loss is found.
fn caught(outcome: Result<(), String>) {
    let lost = outcome.expect_err("a disk that ignores FLUSH loses what is safe");
    eprintln!("caught {lost}");
}

/// The fault of a disk that breaks its promise.
const LIAR: Option<&str> = Some("ignore-flush");
