//! A video server: how many streams a disk holds where deadlines are met nearly always, and where they always are.
//!
//! Modelled: one of ten disks of a server, all alike, each with its share of the streams; reads from the first zone. Soft admission is drawn
//! from rounds on the simulated drive, hard admission counts the worst of each request. Not modelled: clients, network, host.
//!
//! *Source:* Schindler, Griffin, Lumb and Ganger 2002, section 5.3.

mod hard;
mod modern;
mod soft;
#[cfg(test)]
mod tests;

use super::access::{FirstZone, boundaries};
use crate::study::{Findings, Setting, StudyError};
use headstack_model::spec::DriveSpec;
use headstack_model::{Geometry, Lbn, drives};

const DISKS: u32 = 10;

/// What one disk of a server is to do.
struct Server {
    spec: DriveSpec,
    /// Where the tracks of the first zone begin, and where the last one ends.
    tracks: Vec<Lbn>,
    zone: FirstZone,
    /// Bytes a second of a stream.
    rate: f64,
    /// More streams than that the media never hold.
    limit: u32,
}

impl Server {
    /// On a shipped drive.
    fn new(drive: &str, rate: f64, limit: u32) -> Result<Server, StudyError> {
        let spec = drives::load(drive)?;
        let geometry = Geometry::new(&spec)?;
        let zone = FirstZone::of(&spec, &geometry);
        let tracks = boundaries(&geometry, Lbn(0), zone.end);
        Ok(Server { spec, tracks, zone, rate, limit })
    }

    /// Blocks of a track, on average.
    fn track_sectors(&self) -> f64 {
        let all = self.tracks[self.tracks.len() - 1] - self.tracks[0];
        all as f64 / (self.tracks.len() - 1) as f64
    }

    fn bytes(&self, tracks: f64) -> f64 {
        tracks * self.track_sectors() * f64::from(self.spec.sector_bytes)
    }

    /// Seconds in which a stream uses up this number of tracks.
    fn period(&self, tracks: f64) -> f64 {
        self.bytes(tracks) / self.rate
    }

    /// The longest time until a new stream's first data are there, for rounds of `round` seconds: its first disk has just begun a
    /// round, and each disk in turn may be full.
    fn start_up(&self, round: f64) -> f64 {
        round * f64::from(DISKS + 1)
    }
}

/// The study's server: streams of 4 Mb/s, of which 40 MB/s are 80.
fn published() -> Result<Server, StudyError> {
    Server::new("atlas-10k-ii", 4e6 / 8.0, 80)
}

pub(super) fn run(setting: &Setting<'_>) -> Result<Findings, StudyError> {
    let server = published()?;
    Ok(Findings::join([soft::run(setting, &server)?, hard::run(&server), modern::run(setting)?]))
}
