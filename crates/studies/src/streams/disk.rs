//! The study's disk, as its table 5.1 and its text describe it.

use super::play::{self, DRIVE, MIB};
use crate::judge::Measured;
use crate::modern_drives::mean_seek_ms;
use crate::study::{Findings, Setting, StudyError};
use headstack::report::{Axis, Chart, Section, Series};
use headstack_model::drives;

/// Number of places where streams begin, over which the bandwidth is averaged.
const PLACES: u32 = 100;

pub(super) fn run(setting: &Setting<'_>) -> Result<Findings, StudyError> {
    let spec = drives::load(DRIVE)?;
    let cache = f64::from(spec.cache.segments * spec.cache.segment_sectors * spec.sector_bytes);
    let bus_mb_s = f64::from(spec.sector_bytes) / spec.bus.read_us_per_sector;
    let measured = vec![
        Measured::new("disk.rpm", spec.mechanics.rpm),
        Measured::new("disk.mean_seek_ms", mean_seek_ms(&spec, spec.capacity_sectors)?),
        Measured::new("disk.cache_mib", cache / MIB as f64),
        Measured::new("disk.interface_mb_s", bus_mb_s),
        Measured::new("disk.own_mb_s", play::own_mb_s(PLACES, setting.length)?),
    ];
    let counts = [1, 2, 5, 10, 20, 30, 60, 100];
    let own = setting.map(&counts, |streams| play::own_mb_s(*streams, setting.length))?;
    let line =
        Series::new("one place after the other", 0, counts.iter().map(|count| f64::from(*count)).zip(own));
    let section = Section::new("The disk")
        .with_text("What the disk gives a single reader at the places where streams begin, and so the most that all of them can get together.")
        .with_chart(Chart::new("Its own bandwidth at the places where streams begin", Axis::linear("streams"), Axis::linear("MB/s"), [line]));
    Ok(Findings::new(measured, [section]))
}
