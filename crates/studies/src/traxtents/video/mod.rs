//! A video server: the number of streams per disk when deadlines are met nearly always, and when they are always met.
//!
//! Modelled: one of a server's ten equal disks, with its share of the streams, which it reads from the first zone. Soft admission follows
//! from rounds on the simulated drive; hard admission adds up the worst case of each request. Not modelled: clients, network, host.
//!
//! *Source:* Schindler, Griffin, Lumb and Ganger 2002, section 5.3.

mod hard;
mod modern;
mod rounds;
mod soft;
#[cfg(test)]
mod tests;

use super::access::{FirstZone, boundaries};
use crate::study::{Findings, Setting, StudyError};
use headstack_model::spec::DriveSpec;
use headstack_model::{Geometry, Lbn, drives};

const DISKS: u32 = 10;

/// The task of one disk of the server.
struct Server {
    spec: DriveSpec,
    /// The starts of the tracks in the first zone, and the end of the last one.
    tracks: Vec<Lbn>,
    zone: FirstZone,
    /// Bytes per second of a stream.
    rate: f64,
    /// A number of streams that exceeds the media rate.
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

    /// Seconds in which a stream consumes this number of tracks.
    fn period(&self, tracks: f64) -> f64 {
        self.bytes(tracks) / self.rate
    }

    /// The longest time until a new stream's first data arrive, for rounds of `round` seconds. In the worst case its first disk has just
    /// begun a round, and each disk in turn is full.
    fn start_up(&self, round: f64) -> f64 {
        round * f64::from(DISKS + 1)
    }
}

/// The study's server: streams of 4 Mb/s, 80 of which fill 40 MB/s.
fn published() -> Result<Server, StudyError> {
    Server::new("atlas-10k-ii", 4e6 / 8.0, 80)
}

pub(super) fn run(setting: &Setting<'_>) -> Result<Findings, StudyError> {
    let server = published()?;
    Ok(Findings::join([soft::run(setting, &server)?, hard::run(&server), modern::run(setting)?]))
}
