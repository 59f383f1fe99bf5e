//! The write pointers of an emulated disk in its store's file, behind the disk's bytes.
//!
//! A page of text says how the disk is divided. After it come eight bytes (little-endian) for each zone: the number of blocks written
//! from the start of the zone. The state of a zone after a restart follows from that number: no zone is open then.
//!
//! The file says what a power cut would leave: a number counts blocks on the media only. It is written after the blocks' data and before any
//! client learns that they are safe. It is overwritten by a single write, so that the old or the new number is left whenever the program
//! ends. The page of text is written last, so that an area that the program did not write completely has none.

use super::Emulator;
use super::store::{Store, TableArea};
use super::zones_error::ZonesError;
use headstack_model::zones::{ZoneLayout, Zones};
use headstack_streams::rearrange_table::PAGE_BYTES;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

/// First line of the head: its format.
const FIRST_LINE: &str = "headstack zones 1";
/// Bytes of the head.
const HEAD_BYTES: u64 = PAGE_BYTES as u64;
/// Bytes of a number.
const NUMBER_BYTES: u64 = 8;

/// How many bytes the write pointers of a disk take.
fn area_bytes(layout: &ZoneLayout) -> u64 {
    HEAD_BYTES + (u64::from(layout.zones()) * NUMBER_BYTES).next_multiple_of(HEAD_BYTES)
}

fn head(layout: &ZoneLayout) -> Vec<u8> {
    let (zones, sectors, conventional) = (layout.zones(), layout.zone_sectors, layout.conventional);
    let text = format!("{FIRST_LINE}\nzones {zones}\nzone_sectors {sectors}\nconventional {conventional}\n");
    let mut page = text.into_bytes();
    page.resize(HEAD_BYTES as usize, 0);
    page
}

fn written(zones: &Zones) -> Vec<u64> {
    zones.iter().map(|zone| zone.write_pointer - zone.start).collect()
}

/// The blocks written of each zone, from an area of a file; `None` if nothing was written there yet.
fn read(file: &File, area: &TableArea, layout: &ZoneLayout) -> Result<Option<Vec<u64>>, ZonesError> {
    let mut bytes = vec![0; area.bytes as usize];
    file.read_exact_at(&mut bytes, area.first)?;
    let (found, numbers) = bytes.split_at(HEAD_BYTES.min(area.bytes) as usize);
    if found.iter().all(|byte| *byte == 0) {
        return Ok(None);
    }
    if area.bytes != area_bytes(layout) || found != head(layout) {
        return Err(ZonesError::OtherZones);
    }
    let zones = Zones::new(*layout);
    let numbers = numbers.chunks_exact(NUMBER_BYTES as usize);
    let read = zones.iter().zip(numbers).enumerate().map(|(number, (zone, bytes))| {
        let written = u64::from_le_bytes(bytes.try_into().expect("a chunk has eight bytes"));
        let is_right = written <= zone.sectors && (written == 0 || number as u32 >= layout.conventional);
        is_right.then_some(written).ok_or(ZonesError::Damaged {
            zone: number,
            written,
            sectors: zone.sectors,
        })
    });
    read.collect::<Result<_, _>>().map(Some)
}

/// The write pointers that a file has for a disk with these zones, for programs that do not emulate it; `None` if it has none.
///
/// *Errors:* the file cannot be read, or has the write pointers of other zones.
pub fn stored_write_pointers(file: &File, layout: &ZoneLayout) -> Result<Option<Vec<u64>>, ZonesError> {
    match TableArea::find(file)? {
        Some(area) => read(file, &area, layout),
        None => Ok(None),
    }
}

/// Write pointers in a file.
#[derive(Debug)]
pub(super) struct ZonesFile {
    file: File,
    /// First byte of the numbers.
    first: u64,
    /// The numbers in the file.
    written: Vec<u64>,
}

impl ZonesFile {
    /// Opens the write pointers after a store's data, or writes those of `zones`; `None` for a store in memory. The second result says
    /// whether the file already had them.
    fn open(store: &mut Store, zones: &Zones) -> Result<Option<(ZonesFile, bool)>, ZonesError> {
        let layout = zones.layout();
        let Some((file, area)) = store.zones_area(area_bytes(layout))? else { return Ok(None) };
        let found = read(&file, &area, layout)?;
        let was_there = found.is_some();
        let written = found.unwrap_or_else(|| written(zones));
        let first = area.first + HEAD_BYTES;
        if !was_there {
            let bytes: Vec<u8> = written.iter().flat_map(|number| number.to_le_bytes()).collect();
            file.write_all_at(&bytes, first)?;
            file.write_all_at(&head(layout), area.first)?;
        }
        Ok(Some((ZonesFile { file, first, written }, was_there)))
    }

    fn record(&mut self, zone: u32, written: u64) {
        let number = &mut self.written[zone as usize];
        let place = self.first + u64::from(zone) * NUMBER_BYTES;
        if *number != written && self.file.write_all_at(&written.to_le_bytes(), place).is_ok() {
            *number = written;
        }
    }

    /// Writes the pointers of all zones.
    fn close(&self, zones: &Zones) -> io::Result<()> {
        let bytes: Vec<u8> = written(zones).iter().flat_map(|number| number.to_le_bytes()).collect();
        self.file.write_all_at(&bytes, self.first)
    }
}

impl Emulator {
    /// Continues with the write pointers in the stores' files, and records each change there. Call it before the first operation. A volume
    /// without zones, one whose bytes are in memory, and one whose model does not know what is on its media keep none.
    ///
    /// *Errors:* write pointers that are damaged, of other zones, or cannot be read or written, with the number of the volume.
    pub fn keep_zones(&mut self) -> Result<(), (usize, ZonesError)> {
        let Some(engine) = self.machine.engine_mut() else { return Ok(()) };
        for (number, volume) in self.volumes.iter_mut().enumerate() {
            let Some(zones) = engine.media_zones(number) else { continue };
            let opened = ZonesFile::open(&mut volume.store, zones);
            let Some((file, was_there)) = opened.map_err(|error| (number, error))? else { continue };
            if was_there {
                engine.restore_zones(number, &file.written);
            }
            self.zones.push((number, file));
        }
        Ok(())
    }

    /// Writes the write pointers that moved. `has_settled` as in [`headstack_sim::Engine::report_zones`].
    pub(super) fn record_zones(&mut self, has_settled: bool) {
        let Some(engine) = self.machine.engine_mut() else { return };
        for (number, file) in &mut self.zones {
            engine.report_zones(*number, has_settled, &mut |zone, written| file.record(zone, written));
        }
    }

    /// Writes all write pointers for an orderly end, after which no data are dirty. Those of a dead drive stay as they are.
    pub(super) fn close_zones(&mut self) -> Result<(), crate::BlockError> {
        let Some(engine) = self.machine.engine() else { return Ok(()) };
        for (number, file) in &self.zones {
            let Some(zones) = engine.media_zones(*number).filter(|_| !self.volumes[*number].is_dead()) else {
                continue;
            };
            file.close(zones).map_err(|_| crate::BlockError::NoSpace)?;
        }
        Ok(())
    }
}
