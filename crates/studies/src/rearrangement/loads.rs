//! The loads: a week of a workstation, and file servers whose hot blocks drift slowly or quickly.

use crate::study::{Length, Setting, StudyError};
use headstack_model::{Instant, Lbn, Nanos, Request};
use headstack_workload::trace::{DeviceMap, OutOfRange, Replay, ReplayOptions, Trace};
use headstack_workload::{
    Closed, Distribution, DriftShape, Drifting, Load, Open, Pick, Popularity, Region, VolumeInfo,
};

/// The trace of the week: HP workstation, part of DiskSim's examples.
pub(super) const WEEK_FILE: &str = "ajw.1week.srt";

/// The drives of the week's rig, one per device of the trace. The first is device 0, which receives 95 % of the requests.
pub(super) const WEEK_DRIVES: u32 = 2;

/// Sectors of a block of 8 KiB.
const BLOCK_SECTORS: u32 = 16;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RearrangedLoad {
    Week,
    Steady,
    Slow,
    Quick,
}

impl RearrangedLoad {
    pub(super) const ALL: [RearrangedLoad; 4] =
        [RearrangedLoad::Week, RearrangedLoad::Steady, RearrangedLoad::Slow, RearrangedLoad::Quick];

    pub(super) fn name(self) -> &'static str {
        match self {
            RearrangedLoad::Week => "week",
            RearrangedLoad::Steady => "steady",
            RearrangedLoad::Slow => "slow",
            RearrangedLoad::Quick => "quick",
        }
    }

    pub(super) fn is_trace(self) -> bool {
        self == RearrangedLoad::Week
    }

    /// The name of the load's trace file, if the load has one and the file was handed in.
    pub(super) fn trace(self, setting: &Setting<'_>) -> Result<Option<Vec<u8>>, StudyError> {
        if !self.is_trace() {
            return Ok(None);
        }
        let Some(mut reader) = setting.bench.open(WEEK_FILE).map_err(StudyError::Input)? else {
            return Ok(None);
        };
        let mut bytes = Vec::new();
        let done = reader.read_to_end(&mut bytes);
        done.map_err(|error| StudyError::Input(format!("{WEEK_FILE}: {error}")))?;
        Ok(Some(bytes))
    }

    /// Rate at which ranks change, per day, and the share of reads. After a day, the share exp(-rate) of the blocks still has its rank: 98,
    /// 80 and 30 %.
    fn change_and_reads(self) -> (f64, f64) {
        match self {
            RearrangedLoad::Steady => (0.0202, 0.9),
            RearrangedLoad::Slow => (0.2231, 0.5),
            RearrangedLoad::Quick | RearrangedLoad::Week => (1.2040, 0.5),
        }
    }
}

/// What the file servers have in common.
#[derive(Clone, Copy, Debug)]
pub(super) struct ServerShape {
    /// Zipf's exponent; 0 makes all blocks equally popular.
    pub(super) exponent: f64,
    /// One block in this many is in use; the used blocks are evenly spread over the disk.
    pub(super) spread: u64,
    /// Mean time between requests.
    pub(super) gap_ms: f64,
    pub(super) day_requests: u64,
}

impl ServerShape {
    /// Mean queues lie within the study's 0.5 to 2.3. *Source:* the exponent is the one that fits the week (`headstack trace stat`); the
    /// others are assumptions.
    pub(super) const STUDY: ServerShape =
        ServerShape { exponent: 0.98, spread: 1, gap_ms: 32.0, day_requests: 100_000 };
}

/// A load, with the shape of its requests if it has no trace.
#[derive(Clone, Copy, Debug)]
pub(super) struct LoadCase {
    pub(super) load: RearrangedLoad,
    pub(super) shape: ServerShape,
}

impl LoadCase {
    pub(super) fn study(load: RearrangedLoad) -> LoadCase {
        LoadCase { load, shape: ServerShape::STUDY }
    }

    /// Length of a day, in seconds of the load's time.
    pub(super) fn day_s(&self) -> f64 {
        if self.load.is_trace() {
            return 86_400.0;
        }
        self.shape.day_requests as f64 * self.shape.gap_ms / 1e3
    }

    /// The requests, for a rig with these volumes.
    pub(super) fn requests<'a>(
        &self,
        trace: Option<&'a [u8]>,
        volumes: &[VolumeInfo],
        length: Length,
    ) -> Result<Box<dyn Load + 'a>, StudyError> {
        if let Some(bytes) = trace {
            let input = |error: headstack_workload::trace::TraceError| StudyError::Input(error.to_string());
            let trace = Trace::open(bytes, WEEK_FILE, None).map_err(input)?;
            // Device 1 appears first.
            let devices = (0..WEEK_DRIVES).map(|device| (device.to_string(), device)).collect();
            let options = ReplayOptions {
                out_of_range: OutOfRange::Wrap,
                devices: DeviceMap::Named(devices),
                ..ReplayOptions::default()
            };
            return Ok(Box::new(Replay::new(trace, volumes, options)));
        }
        let gaps = Distribution::exponential(Nanos::from_ms(self.shape.gap_ms));
        let requests = length.pick(6, 3) * self.shape.day_requests;
        Ok(Box::new(Open::from_pick(self.blocks(volumes)?, &gaps, requests, 2)?))
    }

    /// The requests of a server with this many clients, each of which waits for its answer.
    pub(super) fn closed(
        &self,
        volumes: &[VolumeInfo],
        clients: u32,
        requests: u64,
    ) -> Result<Closed<SpreadBlocks>, StudyError> {
        Ok(Closed::from_pick(self.blocks(volumes)?, clients, requests)?)
    }

    fn blocks(&self, volumes: &[VolumeInfo]) -> Result<SpreadBlocks, StudyError> {
        let ServerShape { exponent, spread, .. } = self.shape;
        let (change, read_share) = self.load.change_and_reads();
        let block = u64::from(BLOCK_SECTORS);
        let popularity = if exponent > 0.0 { Popularity::Zipf { exponent } } else { Popularity::Even };
        let shape = DriftShape {
            region: Region::whole(volumes[0].sectors / block / spread * block),
            group: block,
            popularity,
            sectors: BLOCK_SECTORS,
            alignment: BLOCK_SECTORS,
            read_share,
            drift_per_hour: change * 3600.0 / self.day_s(),
        };
        Ok(SpreadBlocks { blocks: Drifting::new(shape, 1)?, spread })
    }
}

/// Requests to blocks at the start of a disk, spread out so that they cover the disk evenly.
pub(super) struct SpreadBlocks {
    blocks: Drifting,
    spread: u64,
}

impl Pick for SpreadBlocks {
    fn pick(&mut self, now: Instant) -> Request {
        let request = self.blocks.pick(now);
        Request { lbn: Lbn(request.lbn.0 * self.spread), ..request }
    }
}
