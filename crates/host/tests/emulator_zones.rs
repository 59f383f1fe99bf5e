//! Emulated disks with zones: write pointers in the file, over orderly ends, kills and power cuts.

#![allow(clippy::disallowed_methods, reason = "tests write and damage files")]

use headstack_host::Operation;
use headstack_host::disk::{Emulator, EmulatorFaults, Store, Volume, ZonesError, stored_write_pointers};
use headstack_model::zones::{ZoneState, Zones};
use headstack_model::{Instant, Nanos, drives};
use headstack_sim::Rig;
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;
use std::fs;
use std::os::unix::fs::FileExt;
use std::path::PathBuf;

const SECTOR: u64 = 512;
const ZONE_SECTORS: u64 = 4096;
const CONVENTIONAL: u64 = 4;

/// A disk with a write cache and small zones, empty at first.
fn rig(zone_sectors: u64) -> Rig {
    let text = format!(
        "[drive]\npreset = \"wd800jd\"\n\
         zones = {{ model = \"host-managed\", zone_sectors = {zone_sectors}, conventional = {CONVENTIONAL}, open_max = 8, full_at_first = false }}\n"
    );
    Rig::parse(&text, "rig", &mut |name| drives::load(name)).unwrap_or_else(|error| panic!("{error}"))
}

/// A folder with the file of a disk.
struct Image(tempfile::TempDir);

impl Image {
    fn new() -> Image {
        Image(tempfile::tempdir().expect("there is room for it"))
    }

    fn path(&self) -> PathBuf {
        self.0.path().join("disk")
    }

    fn open(&self, rig: &Rig) -> Result<Emulated, ZonesError> {
        let info = rig.volumes().remove(0);
        let (store, _) =
            Store::file(&self.path(), info.bytes(), "disk").unwrap_or_else(|error| panic!("{error}"));
        let engine = rig.build(0).expect("the rig is good");
        let volumes = vec![Volume::new(info, store)];
        let mut emulator = Emulator::new(engine, volumes, EmulatorFaults::default())
            .expect("a drive tells what is on its media");
        emulator.keep_zones().map_err(|(_, error)| error)?;
        Ok(Emulated { emulator, now: Instant::ZERO })
    }

    fn opened(&self) -> Emulated {
        self.open(&rig(ZONE_SECTORS)).unwrap_or_else(|error| panic!("{error}"))
    }
}

/// A disk and its time.
struct Emulated {
    emulator: Emulator,
    now: Instant,
}

impl Emulated {
    fn zones(&self) -> &Zones {
        let engine = self.emulator.engine().expect("it has a model");
        engine.media_zones(0).expect("the disk has zones")
    }

    /// The blocks written of each zone.
    fn written(&self) -> Vec<u64> {
        self.zones().iter().map(|zone| zone.write_pointer - zone.start).collect()
    }

    fn carry_out(&mut self, operation: Operation) {
        self.emulator.submit(self.now, 0, operation, 0);
        loop {
            if let Some(answered) = self.emulator.poll_answer() {
                answered.result.expect("nothing is wrong with it");
                return;
            }
            self.now = self.now.max(self.emulator.poll_timeout().expect("it is in flight"));
            self.emulator.handle_timeout(self.now);
        }
    }

    /// Writes at the write pointer of a zone as many sectors, each with the zone's number in all bytes.
    fn append(&mut self, zone: u64, sectors: u64, fua: bool) {
        let found = self.zones().zone(zone as u32);
        let at = match found.state {
            ZoneState::Full => found.start,
            _ => found.write_pointer,
        };
        let data = vec![zone as u8; (sectors * SECTOR) as usize];
        self.carry_out(Operation::Write { offset: at.0 * SECTOR, data, fua });
    }

    /// Lets the disk work by itself.
    fn rest(&mut self, time: Nanos) {
        let until = self.now + time;
        while let Some(next) = self.emulator.poll_timeout().filter(|next| *next <= until) {
            self.now = self.now.max(next);
            self.emulator.handle_timeout(self.now);
        }
        self.now = until;
    }

    /// Checks that all blocks below the write pointers are what was written there, in zones that were empty at first.
    fn check_data(&self) {
        for (zone, written) in self.written().into_iter().enumerate().skip(CONVENTIONAL as usize) {
            let mut bytes = vec![0; (written * SECTOR) as usize];
            let at = zone as u64 * ZONE_SECTORS * SECTOR;
            self.emulator.read(0, at, &mut bytes).expect("it is inside");
            assert!(bytes.iter().all(|byte| *byte == zone as u8), "{written} blocks of zone {zone}");
        }
    }
}

#[test]
fn orderly_end_keeps_write_pointers_and_closes_open_zones() {
    let image = Image::new();
    let mut disk = image.opened();
    for (zone, sectors) in
        [(5, 8), (6, ZONE_SECTORS / 2), (7, ZONE_SECTORS / 2), (7, ZONE_SECTORS / 2), (9, 16)]
    {
        disk.append(zone, sectors, false);
    }
    let written = disk.written();
    assert_eq!((written[5], written[6], disk.zones().open()), (8, ZONE_SECTORS / 2, 3));
    disk.emulator.finish_writing().expect("there is room");
    drop(disk);
    let again = image.opened();
    assert_eq!(again.written(), written);
    let states = [4, 5, 6, 7, 9].map(|zone| again.zones().zone(zone).state);
    use ZoneState::{Closed, Empty, Full};
    assert_eq!(states, [Empty, Closed, Closed, Full, Closed]);
    assert_eq!((again.zones().open(), again.zones().active()), (0, 3));
    again.check_data();
}

#[test]
fn disk_continues_at_the_write_pointers_of_the_run_before() {
    let image = Image::new();
    for run in 1..4 {
        let mut disk = image.opened();
        disk.append(5, 8, false);
        assert_eq!(disk.written()[5], 8 * run);
        disk.emulator.finish_writing().expect("there is room");
    }
}

/// Appends to some zones, flushes at times, and ends the disk by `end`. Returns the least and the most that each zone may have then.
fn killed(image: &Image, seed: u64, end: impl FnOnce(&mut Emulated)) -> Vec<(u64, u64)> {
    let mut disk = image.opened();
    let mut random = Pcg64Mcg::seed_from_u64(seed);
    let mut safe = disk.written();
    for _ in 0..random.random_range(20..120) {
        let zone = random.random_range(5..9);
        let left = ZONE_SECTORS - disk.written()[zone as usize];
        let fua = random.random_bool(0.1);
        disk.append(zone, if left == 0 { 8 } else { left.min(8 * random.random_range(1..64)) }, fua);
        if left == 0 {
            // A reset takes effect at once.
            safe[zone as usize] = 0;
        }
        match random.random_range(0..10) {
            0 => {
                disk.carry_out(Operation::Flush);
                safe = disk.written();
            }
            1 => disk.rest(Nanos(random.random_range(0..300_000_000))),
            // A forced write may have blocks before it that are in the cache only, and then counts no more than they do.
            _ => {}
        }
    }
    end(&mut disk);
    safe.into_iter().zip(disk.written()).collect()
}

#[track_caller]
fn check_between(disk: &Emulated, allowed: &[(u64, u64)]) {
    for (zone, (written, (least, most))) in disk.written().into_iter().zip(allowed).enumerate() {
        assert!(
            (*least..=*most).contains(&written),
            "zone {zone}: {written}, flushed {least}, written {most}"
        );
    }
    assert_eq!(disk.zones().open(), 0);
    disk.check_data();
}

#[test]
fn kill_keeps_flushed_writes_below_the_write_pointers() {
    let image = Image::new();
    let mut lost = 0;
    for seed in 0..12 {
        let allowed = killed(&image, seed, |_| {});
        let disk = image.opened();
        check_between(&disk, &allowed);
        lost += u32::from(disk.written().iter().zip(&allowed).any(|(written, (_, most))| written < most));
    }
    assert!(lost > 3, "{lost} of 12 kills found writes in the cache only");
}

#[test]
fn power_cut_leaves_in_the_file_the_write_pointers_of_the_model() {
    let image = Image::new();
    for seed in 20..32 {
        let mut after = Vec::new();
        let allowed = killed(&image, seed, |disk| {
            let at = disk.now;
            disk.emulator.cut_power(at);
            disk.emulator.finish_writing().expect("nothing is left to write");
            after = disk.written();
        });
        let disk = image.opened();
        assert_eq!(disk.written(), after, "seed {seed}");
        assert!(allowed.iter().zip(&after).all(|((least, _), written)| least <= written), "seed {seed}");
        disk.check_data();
    }
}

#[test]
fn forced_write_moves_the_write_pointer_in_the_file_before_it_is_answered() {
    let image = Image::new();
    let mut disk = image.opened();
    disk.append(5, 8, true);
    drop(disk);
    assert_eq!(image.opened().written()[5], 8);
}

#[test]
fn write_pointers_of_other_zones_or_out_of_range_are_refused() {
    let image = Image::new();
    let disk = image.opened();
    let (layout, disk_bytes) = (*disk.zones().layout(), disk.emulator.volumes()[0].info().bytes());
    drop(disk);
    let refusal = |rig: &Rig| image.open(rig).err().expect("it is refused").to_string();
    assert!(refusal(&rig(2 * ZONE_SECTORS)).contains("it does not hold write pointers of these zones"));
    let file = fs::File::options().read(true).write(true).open(image.path()).expect("it is a file");
    let stored = || stored_write_pointers(&file, &layout).map(|found| found.map(|found| found.len()));
    assert_eq!(stored().expect("they are right"), Some(layout.zones() as usize));
    let number = disk_bytes.next_multiple_of(4096) + 4096 + 8 * 6;
    file.write_all_at(&(ZONE_SECTORS + 1).to_le_bytes(), number).expect("it is writable");
    for said in [refusal(&rig(ZONE_SECTORS)), stored().expect_err("it is damaged").to_string()] {
        assert!(said.contains("4097 of 4096 blocks of zone 6 are written"), "{said}");
    }
    // Without its head, the area is one of which the program did not write all.
    file.write_all_at(&[0; 4096], disk_bytes.next_multiple_of(4096)).expect("it is writable");
    assert_eq!(stored().expect("nothing was written"), None);
    assert_eq!(image.opened().written()[6], 0);
}
