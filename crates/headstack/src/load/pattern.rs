//! Patterns: a given number of requests of one kind, made by a generator.

use crate::error::PatternError;
use headstack_model::{Nanos, Op};
use headstack_sim::Device;
use headstack_workload as workload;
use headstack_workload::{
    Closed, Distribution, Load, Open, Region, Shape, ShapeError, StreamShape, Streams, TrackLoad, TrackShape,
    VolumeInfo,
};
use std::sync::Arc;

/// Default bytes of a request.
const USUAL_BYTES: u32 = 4096;

/// Allowed requests per second of an open load: a mean gap of a nanosecond to eleven days.
const RATES: std::ops::RangeInclusive<f64> = 1e-6..=1e9;

/// Which blocks a pattern accesses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AccessPattern {
    /// Anywhere on the disk, at multiples of the request's size.
    Random,
    /// Consecutive requests from the first block on.
    Sequential,
    /// Several sequential readers, spaced evenly over the disk.
    Streams,
    /// From the start of a random track.
    Aligned,
    /// As long as with [`AccessPattern::Aligned`], from any block.
    Unaligned,
}

/// When the requests of a pattern arrive.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum ArrivalProcess {
    /// A closed load: a constant number of requests is outstanding.
    Closed {
        /// Requests outstanding.
        depth: u32,
    },
    /// An open load: requests arrive at random times, independent of each other and of outstanding ones.
    Open {
        /// Mean requests per second.
        per_s: f64,
    },
}

/// A pattern of requests on one volume.
///
/// ```
/// use headstack::{AccessPattern, PatternSpec};
///
/// let reads = PatternSpec { count: 1000, ..PatternSpec::closed(AccessPattern::Random, 32) };
/// assert_eq!((reads.request_bytes, reads.write_share), (None, 0.0));
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PatternSpec {
    /// Which blocks it accesses.
    pub pattern: AccessPattern,
    /// When its requests arrive.
    pub arrivals: ArrivalProcess,
    /// Bytes of a request. Default: 4 KiB, or a whole track for the patterns by track.
    pub request_bytes: Option<u64>,
    /// Number of sectors from the start of the volume that it accesses. Default: all.
    pub within_sectors: Option<u64>,
    /// Sequential readers of [`AccessPattern::Streams`]; 1 elsewhere.
    pub streams: u32,
    /// Share of writes, 0 to 1.
    pub write_share: f64,
    /// Number of requests.
    pub count: u64,
}

impl PatternSpec {
    /// 10,000 reads of 4 KiB, or of whole tracks, over the whole volume, with `depth` outstanding.
    pub fn closed(pattern: AccessPattern, depth: u32) -> PatternSpec {
        PatternSpec {
            pattern,
            arrivals: ArrivalProcess::Closed { depth },
            request_bytes: None,
            within_sectors: None,
            streams: 1,
            write_share: 0.0,
            count: 10_000,
        }
    }
}

impl PatternSpec {
    /// The load, on a volume that lies on `device`.
    pub(super) fn build(
        &self,
        volume: &VolumeInfo,
        device: &Device,
        seed: u64,
    ) -> Result<Box<dyn Load>, PatternError> {
        self.check()?;
        let within = self.within_sectors.unwrap_or(volume.sectors);
        if within > volume.sectors {
            let (volume, sectors) = (volume.name.clone(), volume.sectors);
            return Err(PatternError::Within { within, volume, sectors });
        }
        if self.is_by_track() && device.sectors() != volume.sectors {
            return Err(PatternError::Tracks(volume.name.clone()));
        }
        let sectors = self.request_bytes.map(|bytes| sectors(bytes, volume)).transpose()?;
        let usual = (USUAL_BYTES / volume.sector_bytes).max(1);
        let region = Region::whole(within);
        Ok(match self.pattern {
            AccessPattern::Aligned | AccessPattern::Unaligned => {
                self.tracks(volume, device, region, sectors, seed)
            }
            AccessPattern::Streams => self.streams(region, sectors.unwrap_or(usual)),
            AccessPattern::Random | AccessPattern::Sequential => {
                self.blocks(region, sectors.unwrap_or(usual), seed)
            }
        }?)
    }

    fn is_by_track(&self) -> bool {
        matches!(self.pattern, AccessPattern::Aligned | AccessPattern::Unaligned)
    }

    /// Rejects settings without meaning for the pattern, rather than ignoring them.
    fn check(&self) -> Result<(), PatternError> {
        let is_tracks = self.is_by_track();
        let is_streams = self.pattern == AccessPattern::Streams;
        if self.streams > 1 && !is_streams {
            return Err(PatternError::Streams(self.streams));
        }
        if is_streams && self.write_share > 0.0 {
            return Err(PatternError::StreamWrites);
        }
        if is_tracks && self.write_share > 0.0 && self.write_share < 1.0 {
            return Err(PatternError::TrackMix);
        }
        if (is_tracks || is_streams) && matches!(self.arrivals, ArrivalProcess::Open { .. }) {
            return Err(PatternError::OpenArrivals);
        }
        if let ArrivalProcess::Open { per_s } = self.arrivals
            && !RATES.contains(&per_s)
        {
            return Err(PatternError::Rate(per_s));
        }
        Ok(())
    }

    fn blocks(&self, region: Region, sectors: u32, seed: u64) -> Result<Box<dyn Load>, ShapeError> {
        let pattern = match self.pattern {
            AccessPattern::Sequential => workload::Pattern::Sequential,
            _ => workload::Pattern::Random,
        };
        let read_share = 1.0 - self.write_share;
        let shape = Shape { region, pattern, sectors, alignment: sectors, read_share };
        Ok(match self.arrivals {
            ArrivalProcess::Closed { depth } => Box::new(Closed::new(shape, depth, self.count, seed)?),
            ArrivalProcess::Open { per_s } => {
                let gaps = Distribution::exponential(Nanos::from_ms(1e3 / per_s));
                Box::new(Open::new(shape, &gaps, self.count, seed)?)
            }
        })
    }

    fn streams(&self, region: Region, sectors: u32) -> Result<Box<dyn Load>, ShapeError> {
        let shape = StreamShape { alignment: sectors, ..StreamShape::reads(region, self.streams, sectors) };
        Ok(Box::new(Streams::new(shape, self.count)?))
    }

    fn tracks(
        &self,
        volume: &VolumeInfo,
        device: &Device,
        region: Region,
        sectors: Option<u32>,
        seed: u64,
    ) -> Result<Box<dyn Load>, ShapeError> {
        let ArrivalProcess::Closed { depth } = self.arrivals else {
            unreachable!("open arrivals of tracks were rejected")
        };
        let op = if self.write_share > 0.0 { Op::Write } else { Op::Read };
        let shape = TrackShape { region, aligned: self.pattern == AccessPattern::Aligned, op, depth };
        let drive = Arc::clone(device.drive());
        let end = volume.sectors;
        let track_of = move |lbn| {
            let mut track = drive.geometry.track_at(lbn);
            let wanted = sectors.unwrap_or(track.sectors);
            track.sectors = wanted.min(u32::try_from(end - track.first.0).unwrap_or(u32::MAX));
            track
        };
        Ok(Box::new(TrackLoad::new(shape, self.count, seed, track_of)?))
    }
}

fn sectors(bytes: u64, volume: &VolumeInfo) -> Result<u32, PatternError> {
    let sector_bytes = volume.sector_bytes;
    if !bytes.is_multiple_of(u64::from(sector_bytes)) {
        return Err(PatternError::SectorSize { bytes, volume: volume.name.clone(), sector_bytes });
    }
    u32::try_from(bytes / u64::from(sector_bytes)).map_err(|_| PatternError::TooLong(bytes))
}
