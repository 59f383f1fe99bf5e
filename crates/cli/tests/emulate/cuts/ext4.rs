//! A program that writes and syncs files on ext4. The files must survive, and the file system must be clean.

use super::{Disk, LIAR, Power, Witness, caught, live_through, must};
use crate::device::Loop;
use crate::emulator::Emulator;
use crate::noise::Noise;
use crate::tools::{attempt, have_loops_and, run};
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, Write};
use std::path::Path;

const PROGRAMS: [&str; 2] = ["mkfs.ext4", "e2fsck"];

#[derive(Default)]
struct Files {
    number: u64,
    /// Names of safe files, and the numbers of their contents.
    safe: BTreeMap<String, u64>,
    /// The file that was being replaced when the power failed, and the number of its new contents. It holds the old contents or the new ones.
    doubtful: Option<(String, u64)>,
}

impl Files {
    /// Writes one file as careful programs do: writes and syncs it under another name, renames it, and syncs the folder.
    fn write(&mut self, folder: &Path) -> io::Result<()> {
        self.number += 1;
        // With 40 names, most files are replaced repeatedly.
        let name = format!("file{}", Noise(self.number).below(40));
        self.doubtful = Some((name.clone(), self.number));
        let new = folder.join(format!("{name}.new"));
        let mut file = File::create(&new)?;
        file.write_all(&contents(self.number))?;
        file.sync_all()?;
        fs::rename(&new, folder.join(&name))?;
        File::open(folder)?.sync_all()?;
        self.safe.insert(name, self.number);
        self.doubtful = None;
        // This file is never synced and never checked.
        fs::write(folder.join("unsynced"), contents(self.number + 1))
    }

    fn look(&mut self, folder: &Path) -> Result<(), String> {
        for (name, number) in &mut self.safe {
            let found = fs::read(folder.join(name)).map_err(|error| format!("{name}: {error}"))?;
            let newer =
                self.doubtful.as_ref().filter(|(other, newer)| other == name && found == contents(*newer));
            match newer {
                Some((_, newer)) => *number = *newer,
                None if found == contents(*number) => {}
                None => return Err(format!("{name} holds {} other bytes", found.len())),
            }
        }
        Ok(())
    }
}

/// The contents with this number: 1 to 60,000 bytes.
fn contents(number: u64) -> Vec<u8> {
    let mut noise = Noise(number);
    let count = 1 + noise.below(60_000);
    noise.bytes(count as usize)
}

impl Witness for Files {
    const SPEED: &str = "10";
    const MOUNTED: bool = true;

    fn prepare(&mut self, emulator: &Emulator) {
        let device = Loop::over(&emulator.file());
        run("mkfs.ext4", &["-q", "-F", device.device(), "1g"]);
    }

    fn work(&mut self, emulator: &Emulator, power: &mut Power) {
        let disk = Disk::mount(emulator).expect("it was mounted before");
        while self.write(disk.mount.path()).is_ok() {
            power.safe();
        }
    }

    fn check(&mut self, emulator: &Emulator) -> Result<(), String> {
        let Disk { mount, device } = Disk::mount(emulator)?;
        self.look(mount.path())?;
        mount.unmount();
        // The mount replayed the journal, so that e2fsck must find nothing to repair.
        attempt("e2fsck", &["-f", "-n", device.device()]).map(drop)
    }
}

#[test]
fn synced_files_on_ext4_survive_power_cuts() {
    if have_loops_and(&PROGRAMS) {
        must(live_through(Files::default(), 3, 20, None));
    }
}

#[test]
fn ext4_exposes_a_disk_that_ignores_flush() {
    if have_loops_and(&PROGRAMS) {
        caught(live_through(Files::default(), 5, 20, LIAR));
    }
}

#[test]
#[ignore = "the long form: make cuts-real"]
fn synced_files_on_ext4_survive_30_power_cuts() {
    if have_loops_and(&PROGRAMS) {
        must(live_through(Files::default(), 30, 60, None));
    }
}
