//! Loads by their description: what `run` and `demo` put on a drive.

use crate::units;
use clap::ValueEnum;
use headstack_model::{DriveSpec, Nanos, Op};
use headstack_sim::Device;
use headstack_workload as workload;
use headstack_workload::{
    Closed, Distribution, Load, Open, Region, Shape, StreamShape, Streams, TrackLoad, TrackShape,
};
use serde::Serialize;
use std::sync::Arc;

/// Which blocks a load asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Pattern {
    /// Anywhere on the disk, at multiples of the request's size.
    Random,
    /// One after the other from the first block on.
    Sequential,
    /// Several sequential readers, spaced evenly over the disk.
    Streams,
    /// From the start of a random track.
    Aligned,
    /// As long as `aligned`, from any block.
    Unaligned,
}

/// When requests come.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Arrivals {
    /// So many are outstanding at all times.
    Closed { depth: u32 },
    /// At random times, independent of each other, so many a second.
    Open { per_s: f64 },
}

/// The description of a load.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LoadSpec {
    pub(crate) pattern: Pattern,
    /// Bytes a request; 4 KiB, or a whole track for the track patterns, when absent.
    pub(crate) size_bytes: Option<u64>,
    /// The first so many sectors of the disk; all of it when absent.
    pub(crate) within_sectors: Option<u64>,
    pub(crate) arrivals: Arrivals,
    pub(crate) streams: u32,
    pub(crate) write_share: f64,
    pub(crate) count: u64,
    pub(crate) seed: u64,
}

impl LoadSpec {
    /// The load, for `device`, a drive of `spec`.
    ///
    /// *Errors:* what does not go together, or does not fit on the drive.
    pub(crate) fn build(&self, spec: &DriveSpec, device: &Device) -> Result<Box<dyn Load>, String> {
        self.check()?;
        let sectors = self.size_bytes.map(|bytes| units::sectors(bytes, spec)).transpose()?;
        let region = Region::whole(self.within_sectors.unwrap_or(device.sectors()));
        match self.pattern {
            Pattern::Aligned | Pattern::Unaligned => self.tracks(device, region, sectors),
            Pattern::Streams => self.streams(region, sectors.unwrap_or(default_sectors(spec))),
            Pattern::Random | Pattern::Sequential => {
                self.blocks(region, sectors.unwrap_or(default_sectors(spec)))
            }
        }
        .map_err(|error| error.to_string())
    }

    /// Options that say nothing to the pattern are refused rather than ignored.
    fn check(&self) -> Result<(), String> {
        let tracks = matches!(self.pattern, Pattern::Aligned | Pattern::Unaligned);
        let streams = self.pattern == Pattern::Streams;
        if self.streams > 1 && !streams {
            return Err("--streams is for --pattern streams".to_string());
        }
        if streams && self.write_share > 0.0 {
            return Err("streams are read only: leave --write-share out".to_string());
        }
        if tracks && self.write_share > 0.0 && self.write_share < 1.0 {
            return Err("track patterns are all reads or all writes: --write-share 0 or 1".to_string());
        }
        if (tracks || streams) && matches!(self.arrivals, Arrivals::Open { .. }) {
            return Err("--rate is for --pattern random and sequential".to_string());
        }
        Ok(())
    }

    fn blocks(&self, region: Region, sectors: u32) -> Result<Box<dyn Load>, workload::ShapeError> {
        let pattern = match self.pattern {
            Pattern::Sequential => workload::Pattern::Sequential,
            _ => workload::Pattern::Random,
        };
        let shape =
            Shape { region, pattern, sectors, alignment: sectors, read_share: 1.0 - self.write_share };
        Ok(match self.arrivals {
            Arrivals::Closed { depth } => Box::new(Closed::new(shape, depth, self.count, self.seed)?),
            Arrivals::Open { per_s } => {
                let gaps = Distribution::exponential(Nanos::from_ms(1e3 / per_s));
                Box::new(Open::new(shape, &gaps, self.count, self.seed)?)
            }
        })
    }

    fn streams(&self, region: Region, sectors: u32) -> Result<Box<dyn Load>, workload::ShapeError> {
        let shape = StreamShape { alignment: sectors, ..StreamShape::reads(region, self.streams, sectors) };
        Ok(Box::new(Streams::new(shape, self.count)?))
    }

    fn tracks(
        &self,
        device: &Device,
        region: Region,
        sectors: Option<u32>,
    ) -> Result<Box<dyn Load>, workload::ShapeError> {
        let Arrivals::Closed { depth } = self.arrivals else { unreachable!("open track loads were refused") };
        let op = if self.write_share > 0.0 { Op::Write } else { Op::Read };
        let shape = TrackShape { region, aligned: self.pattern == Pattern::Aligned, op, depth };
        let drive = Arc::clone(device.drive());
        let end = device.sectors();
        let track_of = move |lbn| {
            let mut track = drive.geometry.track_at(lbn);
            let wanted = sectors.unwrap_or(track.sectors);
            track.sectors = wanted.min(u32::try_from(end - track.first.0).unwrap_or(u32::MAX));
            track
        };
        Ok(Box::new(TrackLoad::new(shape, self.count, self.seed, track_of)?))
    }
}

/// 4 KiB, or a sector where that is larger.
fn default_sectors(spec: &DriveSpec) -> u32 {
    (4096 / spec.sector_bytes).max(1)
}
