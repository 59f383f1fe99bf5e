//! The cost of finding a disk's tracks, by each method: address translations, reads and hours.

use crate::judge::Measured;
use crate::study::{Findings, Length, Setting, StudyError};
use headstack::report::{Section, Table};
use headstack_model::{DriveSpec, Geometry, Lbn, drives};
use headstack_probe::drive::ProbeTarget;
use headstack_probe::simulated::{Noise, SimulatedDisk};
use headstack_probe::{Disk, Extraction, drive, lattice, query, scsi, timing};
use headstack_tracks::TrackMap;
use headstack_tracks::check::compare;
use headstack_tracks::exclude::{Boundaries, Exclusion};
use std::fmt::Display;
use std::future::Future;

/// The disk on which the study measured.
const MEASURED: &str = "atlas-10k";

#[derive(Clone, Copy, Debug, PartialEq)]
enum Way {
    /// By address translation, block after block.
    Query,
    /// By the five steps for SCSI disks.
    Scsi,
    /// By jumps in the time of reads.
    Timing,
    /// By the angles at which reads end.
    Lattice,
}

struct Cost {
    tracks: u64,
    /// Boundaries that were missed, and boundaries that do not exist but were reported.
    wrong: (u64, u64),
    /// Reads and address translations.
    probes: u64,
    /// By the disk's clock.
    minutes: f64,
}

impl Cost {
    fn each(&self) -> f64 {
        self.probes as f64 / self.tracks as f64
    }
}

/// Bytes of a block of FFS.
const BLOCK_BYTES: u64 = 8192;

/// First sector of the first partition of a PC: the BIOS reserves a track for the boot record. The first zone of the Atlas 10K II has
/// tracks of 33 whole blocks, so that without this offset no block in it would span a boundary.
const PARTITION: u64 = 63;

/// The number of FFS blocks per block that spans a track boundary, and the share of spanning blocks in percent.
fn excluded() -> Result<Vec<Measured>, StudyError> {
    let mut measured = Vec::new();
    for name in [MEASURED, "atlas-10k-ii"] {
        let spec = drives::load(name)?;
        let map = TrackMap::of_geometry(&Geometry::new(&spec)?);
        let view = map.view(Lbn(PARTITION), spec.capacity_sectors - PARTITION);
        let exclusion = Exclusion::new(view, BLOCK_BYTES, spec.sector_bytes, Boundaries::Spanned)
            .expect("a block is whole sectors");
        let (blocks, excluded) = (exclusion.blocks() as f64, exclusion.count() as f64);
        measured.push(Measured::new(format!("{name}.excluded.one-in"), blocks / excluded));
        measured.push(Measured::new(format!("{name}.excluded.percent"), 100.0 * excluded / blocks));
    }
    Ok(measured)
}

pub(super) fn run(setting: &Setting<'_>) -> Result<Findings, StudyError> {
    let mut cases = vec![(MEASURED, Way::Query), (MEASURED, Way::Scsi)];
    if setting.length == Length::Full {
        cases.extend([(MEASURED, Way::Timing), (MEASURED, Way::Lattice)]);
        cases.extend(["toshiba-x300", "exos-x18"].map(|name| (name, Way::Lattice)));
    }
    let costs = setting.map(&cases, |(name, way)| cost(&drives::load(name)?, *way))?;
    let columns = ["disk", "way", "tracks", "missed", "false", "probes", "a track", "minutes of the disk"];
    let mut table = Table::new("Finding all tracks", columns).with_words(2);
    let mut measured = excluded()?;
    for ((name, way), cost) in cases.iter().zip(&costs) {
        table.named_row(
            [*name, way.name()],
            [
                cost.tracks as f64,
                cost.wrong.0 as f64,
                cost.wrong.1 as f64,
                cost.probes as f64,
                cost.each(),
                cost.minutes,
            ],
        );
        if *name == MEASURED {
            measured.extend(way.metrics(cost));
        }
    }
    let section = Section::new("What it takes to find the tracks")
        .with_text("Simulated disks behind a host whose clock errs by 8 µs and of whose answers one in two hundred comes up to 3 ms late. \
             Queries of a block's place have no such noise; an answer takes a millisecond, an assumption.")
        .with_table(table);
    Ok(Findings::new(measured, [section]))
}

impl Way {
    fn name(self) -> &'static str {
        match self {
            Way::Query => "query",
            Way::Scsi => "scsi",
            Way::Timing => "timing",
            Way::Lattice => "lattice",
        }
    }

    /// The published metric of this method, and the number of wrong boundaries in the map.
    fn metrics(self, cost: &Cost) -> Vec<Measured> {
        let metric = |what: &str, value| Measured::new(format!("extraction.{}.{what}", self.name()), value);
        let wrong = metric("wrong", (cost.wrong.0 + cost.wrong.1) as f64);
        let cost = match self {
            Way::Query => metric("translations_a_track", cost.each()),
            Way::Scsi => metric("translations", cost.probes as f64),
            Way::Timing => metric("hours", cost.minutes / 60.0),
            Way::Lattice => metric("reads_a_track", cost.each()),
        };
        vec![wrong, cost]
    }
}

/// Extracts a disk's tracks by one method, and compares them with the geometry.
fn cost(spec: &DriveSpec, way: Way) -> Result<Cost, StudyError> {
    let noise = if matches!(way, Way::Query | Way::Scsi) { Noise::NONE } else { Noise::USUAL };
    let mut disk = SimulatedDisk::new(spec, noise, 1)?;
    let map = match way {
        Way::Query => found(&mut disk, query::extract, |found| found.map),
        Way::Scsi => found(&mut disk, scsi::extract, |found| found.map),
        Way::Timing => found(&mut disk, timing::extract, |found| found.map),
        Way::Lattice => found(&mut disk, lattice::extract, |found| found.map),
    };
    let map = map.map_err(|error| StudyError::Input(format!("{}: {}: {error}", spec.name, way.name())))?;
    let truth = TrackMap::of_geometry(&Geometry::new(spec)?);
    let agreement = compare(&map, &truth);
    Ok(Cost {
        tracks: truth.tracks(),
        wrong: (agreement.missed, agreement.false_ones),
        probes: disk.probes(),
        minutes: disk.now().as_secs() / 60.0,
    })
}

/// The map that an extractor finds on a disk that always answers.
///
/// *Errors:* the extractor's own, as text.
fn found<T, E: Display, F>(
    disk: &mut SimulatedDisk,
    extractor: impl FnOnce(Disk) -> F,
    map_of: impl FnOnce(T) -> TrackMap,
) -> Result<TrackMap, String>
where
    F: Future<Output = Result<T, E>> + 'static,
{
    let mut extraction = Extraction::new(disk.info(), extractor);
    let Ok(found) = drive::run(&mut extraction, disk, |_, _, _| true);
    found.expect("the callback never stops the extraction").map(map_of).map_err(|error| error.to_string())
}
