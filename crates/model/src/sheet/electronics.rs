//! Overheads, cache, bus and queue.

use super::text::Text;
use super::{DataSheet, Figure, significant};
use crate::firmware::Recording;
use crate::spec::{Interface, Tagging};

/// Capacity from which on a drive without a given interface is assumed to be on serial ATA.
const SATA_FROM: u64 = 80_000_000_000;
/// Capacity for each byte of cache: shipped drives have 10,000 to 60,000.
const CAPACITY_PER_CACHE: u64 = 16_000;
/// Least and most that is assumed for a cache.
const CACHES: [u64; 2] = [64 << 10, 256 << 20];
/// A segment is no smaller unless the cache is.
const SEGMENT_LEAST: u64 = 128 << 10;
/// A band of shingled tracks, and a zone that the host writes.
const BAND_BYTES: u64 = 30 << 20;
const ZONE_BYTES: u64 = 256 << 20;
/// Most segments.
const SEGMENTS_MOST: u64 = 64;

impl DataSheet {
    pub(super) fn cache_bytes(&self) -> Figure<u64> {
        let usual = (self.capacity_bytes / CAPACITY_PER_CACHE).max(1).next_power_of_two();
        Figure::new(
            self.cache_bytes,
            usual.clamp(CACHES[0], CACHES[1]),
            "what drives of this size have, up to 256 MiB",
        )
    }

    pub(super) fn interface(&self) -> Figure<Interface> {
        let usual = if self.capacity_bytes >= SATA_FROM { Interface::Sata } else { Interface::Ide };
        Figure::new(self.interface, usual, "sata from 80 GB on, else ide")
    }

    pub(super) fn queue_depth(&self) -> Figure<u32> {
        let usual = match self.interface().value {
            Interface::Sata => Tagging::NCQ_TAGS,
            Interface::Sas | Interface::Scsi | Interface::Fc => 64,
            Interface::Ide | Interface::Ssa | Interface::Smd => 1,
        };
        Figure::new(self.queue_depth, usual, "as drives on this interface have")
    }

    /// Rate of the interface: the slowest of its kind that has at least 1.5 times the media rate, or the fastest.
    fn interface_mb_s(&self) -> Figure<f64> {
        let kinds: &[f64] = match self.interface().value {
            Interface::Sata => &[150.0, 300.0, 600.0],
            Interface::Ide => &[16.7, 33.3, 66.7, 100.0, 133.0],
            Interface::Scsi => &[5.0, 10.0, 20.0, 40.0, 80.0, 160.0, 320.0],
            Interface::Sas => &[300.0, 600.0, 1200.0, 2400.0],
            Interface::Fc => &[100.0, 200.0, 400.0, 800.0, 1600.0],
            Interface::Ssa => &[20.0, 40.0, 160.0],
            Interface::Smd => &[1.2, 1.8, 2.4, 3.0],
        };
        let fast = kinds.iter().find(|rate| **rate >= 1.5 * self.mb_s);
        let usual = fast.or(kinds.last()).expect("each interface has a rate");
        Figure::new(
            self.interface_mb_s,
            *usual,
            "the slowest of its kind that is half as fast again as the media",
        )
    }
}

pub(super) fn write(sheet: &DataSheet, text: &mut Text) {
    let has_class = sheet.class().is_some();
    if !has_class {
        overheads(text);
    }
    cache(sheet, has_class, text);
    bus(sheet, text);
    text.table("queue");
    let depth = sheet.queue_depth();
    text.line("depth", depth.value, &depth.source());
    if !has_class {
        text.word("order", order(depth.value, "fcfs"), "assumption");
    }
    recording(sheet, text);
}

fn overheads(text: &mut Text) {
    for table in ["overhead.after_read", "overhead.after_write"] {
        text.table(table);
        for (key, ms) in [("read_hit_ms", 0.05), ("read_miss_ms", 0.15), ("write_ms", 0.1)] {
            text.line(key, ms, "assumption");
        }
    }
}

/// What shingled tracks need: bands and a persistent cache, or zones.
fn recording(sheet: &DataSheet, text: &mut Text) {
    let sectors = sheet.capacity_sectors();
    match sheet.recording {
        Recording::Conventional => {}
        Recording::DriveManaged => {
            text.table("shingled");
            text.line(
                "band_sectors",
                BAND_BYTES / u64::from(sheet.sector_bytes()),
                "assumption: 30 MiB, of a published 15 to 40",
            );
            text.line(
                "cache_sectors",
                sectors / 128,
                "assumption: 0.4 % of the capacity, with two copies of each record",
            );
            text.word("cache_placement", "outer", "assumption");
        }
        Recording::HostManaged => {
            let zone = ZONE_BYTES / u64::from(sheet.sector_bytes());
            text.table("zones");
            text.word("model", "host-managed", "given");
            text.line("zone_sectors", zone, "assumption: 256 MiB");
            text.line("conventional", sectors / zone / 100, "assumption: a hundredth of the zones");
            text.line("open_max", 128, "assumption");
        }
    }
}

fn bus(sheet: &DataSheet, text: &mut Text) {
    text.table("bus");
    let interface = sheet.interface();
    text.word("interface", interface.value.word(), &interface.source());
    let rate = sheet.interface_mb_s();
    let us = significant(f64::from(sheet.sector_bytes()) / rate.value, 4);
    let source = format!("derived: a sector at {} MB/s ({})", rate.value, rate.source());
    text.line("read_us_per_sector", us, &source);
    text.line("write_us_per_sector", us, &source);
}

/// The order of a drive with a queue, or else `alone`.
fn order(depth: u32, alone: &'static str) -> &'static str {
    if depth > 1 { "sptf" } else { alone }
}

fn cache(sheet: &DataSheet, has_class: bool, text: &mut Text) {
    let bytes = sheet.cache_bytes();
    let segments = (bytes.value / SEGMENT_LEAST).clamp(2, SEGMENTS_MOST);
    let sectors = (bytes.value / segments / u64::from(sheet.sector_bytes())).max(2);
    text.table("cache");
    text.line("segments", segments, "assumption");
    let size = format!("derived: {} bytes in all ({})", bytes.value, bytes.source());
    text.line("segment_sectors", sectors, &size);
    if !has_class {
        text.word("read_ahead", "segment", "assumption: until the segment is full");
        text.line("read_ahead_on_hit", true, "assumption");
    }
    text.line("read_ahead_max_sectors", sectors - 1, "derived: a segment without the block asked for");
    let is_ata = sheet.interface().value.tagging() == Tagging::Ncq;
    let write_cache = Figure::new(sheet.write_cache, is_ata, "on with ATA, off with SCSI");
    if !write_cache.value {
        text.word("write_cache", "none", &write_cache.source());
        return;
    }
    text.word("write_cache", "full", &write_cache.source());
    text.line("write_segments", segments / 2, "assumption: half the cache");
    let all = segments * sectors;
    text.line("dirty_max_sectors", all / 2, "assumption: half the cache");
    text.line("dirty_start_sectors", all / 4, "assumption: half of what may be dirty");
    if !has_class {
        text.line("destage_idle_ms", 50, "assumption");
        text.word("destage_order", order(sheet.queue_depth().value, "c-look"), "assumption");
    }
}
