//! From keys to loads, over the volumes of a rig.

use headstack_model::spec::Fault;
use headstack_model::{Instant, Lbn};

use super::spec::{Area, BlocksSpec, BurstSpec, LoadSpec, Order, StreamSpec};
use crate::process::{BurstShape, Processes, ThinkShape};
use crate::shape::seed_of;
use crate::volume::{self, VolumeInfo};
use crate::{
    Closed, DriftShape, Drifting, Load, Member, Mix, Open, Pattern, Region, Shape, ShapeError, Spacing,
    StreamShape, Streams,
};

pub(super) fn build(spec: &LoadSpec, volumes: &[VolumeInfo], seed: u64) -> Result<Mix, Fault> {
    let mut members = Vec::new();
    let mut add = |key: String, make: &dyn Fn(&Table<'_>) -> Result<Member, Fault>| {
        let seed = seed_of(seed, members.len() as u64);
        members.push(make(&Table { key: &key, volumes, seed })?);
        Ok(())
    };
    for (index, table) in spec.blocks.iter().enumerate() {
        add(format!("blocks[{index}]"), &|context| blocks(context, table))?;
    }
    for (index, table) in spec.stream.iter().enumerate() {
        add(format!("stream[{index}]"), &|context| streams(context, table))?;
    }
    for (index, table) in spec.burst.iter().enumerate() {
        add(format!("burst[{index}]"), &|context| bursts(context, table))?;
    }
    if !spec.process.is_empty() {
        add(String::new(), &|context| processes(context, spec))?;
    }
    let end = spec.max_time_s.map_or(Instant::MAX, |seconds| Instant::from_ms(seconds * 1e3));
    let mix = Mix::new(members, spec.requests.unwrap_or(u64::MAX), end);
    mix.map_err(|error| Fault::new("", error.to_string()))
}

struct Table<'a> {
    key: &'a str,
    volumes: &'a [VolumeInfo],
    seed: u64,
}

struct Place {
    device: u32,
    sector_bytes: u64,
    region: Region,
}

impl Table<'_> {
    fn fault(&self, name: &str, message: impl Into<String>) -> Fault {
        Fault::new(format!("{}.{name}", self.key), message)
    }

    fn shape_fault(&self, error: &ShapeError) -> Fault {
        let name = match error {
            ShapeError::Drift { .. } => "drift_per_hour",
            ShapeError::Groups { .. } => "group_bytes",
            _ => "area",
        };
        self.fault(name, error.to_string())
    }

    fn region_of(&self, area: &Area) -> Result<Place, Fault> {
        let device = match &area.volume {
            Some(name) => {
                volume::find(self.volumes, name).map_err(|error| self.fault("area.volume", error))?
            }
            None => 0,
        };
        let Some(volume) = self.volumes.get(device) else {
            return Err(self.fault("area", "the rig has no volume"));
        };
        let sector_bytes = u64::from(volume.sector_bytes.max(1));
        let first = whole(area.offset_bytes, sector_bytes).map_err(|e| self.fault("area.offset_bytes", e))?;
        let left = volume.sectors.checked_sub(first).filter(|left| *left > 0);
        let Some(left) = left else {
            let message = format!("{} is not before the end of `{}`", area.offset_bytes, volume.name);
            return Err(self.fault("area.offset_bytes", message));
        };
        let sectors = match area.size_bytes {
            Some(bytes) => {
                whole(bytes, sector_bytes).map_err(|error| self.fault("area.size_bytes", error))?
            }
            None => left,
        };
        if sectors > left {
            let message = format!("more than the {} bytes left of `{}`", left * sector_bytes, volume.name);
            return Err(self.fault("area.size_bytes", message));
        }
        Ok(Place { device: device as u32, sector_bytes, region: Region { first: Lbn(first), sectors } })
    }

    fn sectors(&self, place: &Place, name: &str, bytes: u64) -> Result<u64, Fault> {
        match whole(bytes, place.sector_bytes) {
            Ok(0) => Err(self.fault(name, "0, where at least a sector is needed")),
            Ok(sectors) => Ok(sectors),
            Err(error) => Err(self.fault(name, error)),
        }
    }

    /// A size in sectors that a request may have.
    fn request(&self, place: &Place, name: &str, bytes: u64) -> Result<u32, Fault> {
        let sectors = self.sectors(place, name, bytes)?;
        u32::try_from(sectors).map_err(|_| self.fault(name, format!("{bytes} bytes are too many")))
    }

    fn request_and_alignment(
        &self,
        place: &Place,
        bytes: u64,
        alignment: Option<u64>,
    ) -> Result<(u32, u32), Fault> {
        let sectors = self.request(place, "request_bytes", bytes)?;
        let alignment = alignment.map(|bytes| self.request(place, "alignment_bytes", bytes)).transpose()?;
        Ok((sectors, alignment.unwrap_or(sectors)))
    }

    fn member<L: Load + 'static>(
        &self,
        place: &Place,
        sources: u32,
        load: Result<L, ShapeError>,
    ) -> Result<Member, Fault> {
        let load = load.map_err(|error| self.shape_fault(&error))?;
        Ok(Member { load: Box::new(load), device: place.device, sources })
    }
}

fn whole(bytes: u64, sector_bytes: u64) -> Result<u64, String> {
    if bytes.is_multiple_of(sector_bytes) {
        return Ok(bytes / sector_bytes);
    }
    Err(format!("{bytes} bytes are no whole number of sectors of {sector_bytes} bytes"))
}

fn blocks(table: &Table<'_>, spec: &BlocksSpec) -> Result<Member, Fault> {
    let place = table.region_of(&spec.area)?;
    if spec.popularity.is_some() {
        return popular(table, &place, spec);
    }
    let (sectors, alignment) =
        table.request_and_alignment(&place, spec.request_bytes, spec.alignment_bytes)?;
    let pattern = match spec.order {
        Order::Random => Pattern::Random,
        Order::Sequential => Pattern::Sequential,
    };
    let shape = Shape { region: place.region, pattern, sectors, alignment, read_share: spec.read_share };
    let (requests, seed) = (spec.requests.unwrap_or(u64::MAX), table.seed);
    if let Some(gap) = &spec.gap {
        return table.member(&place, 1, Open::new(shape, gap, requests, seed));
    }
    if let Some(processes) = spec.processes {
        let think = spec.think_time.clone().unwrap_or_default();
        let shape = ThinkShape { shape, processes, think };
        return table.member(&place, processes, Processes::thinking(&shape, requests, seed));
    }
    table.member(&place, 1, Closed::new(shape, spec.depth.unwrap_or(1), requests, seed))
}

fn popular(table: &Table<'_>, place: &Place, spec: &BlocksSpec) -> Result<Member, Fault> {
    let (sectors, alignment) =
        table.request_and_alignment(place, spec.request_bytes, spec.alignment_bytes)?;
    let group = table.sectors(place, "group_bytes", spec.group_bytes.unwrap_or(0))?;
    let shape = DriftShape {
        region: place.region,
        group,
        popularity: spec.popularity.clone().unwrap_or(crate::Popularity::Even),
        sectors,
        alignment,
        read_share: spec.read_share,
        drift_per_hour: spec.drift_per_hour,
    };
    let requests = spec.requests.unwrap_or(u64::MAX);
    let pick = Drifting::new(shape, table.seed).map_err(|error| table.shape_fault(&error))?;
    match (&spec.gap, spec.depth) {
        (Some(gap), _) => table.member(place, 1, Open::from_pick(pick, gap, requests, table.seed)),
        (None, depth) => table.member(place, 1, Closed::from_pick(pick, depth.unwrap_or(1), requests)),
    }
}

fn streams(table: &Table<'_>, spec: &StreamSpec) -> Result<Member, Fault> {
    let place = table.region_of(&spec.area)?;
    let (sectors, alignment) =
        table.request_and_alignment(&place, spec.request_bytes, spec.alignment_bytes)?;
    let spacing = match spec.interval_bytes {
        Some(bytes) => Spacing::Interval(table.sectors(&place, "interval_bytes", bytes)?),
        None => Spacing::Even,
    };
    let shape = StreamShape {
        region: place.region,
        spacing,
        streams: spec.streams,
        depth: spec.depth,
        sectors,
        alignment,
        op: spec.op.into(),
        each: spec.requests_each,
    };
    table.member(&place, spec.streams, Streams::new(shape, spec.requests.unwrap_or(u64::MAX)))
}

fn bursts(table: &Table<'_>, spec: &BurstSpec) -> Result<Member, Fault> {
    let place = table.region_of(&spec.area)?;
    let alignment = spec.alignment_bytes.unwrap_or(place.sector_bytes);
    let (sectors, alignment) = table.request_and_alignment(&place, spec.request_bytes, Some(alignment))?;
    let shape = BurstShape {
        region: place.region,
        processes: spec.processes,
        run: spec.run_bytes.div_ceil(place.sector_bytes),
        times: spec.times,
        sectors,
        alignment,
        op: spec.op.into(),
    };
    table.member(&place, spec.processes, Processes::bursts(&shape, u64::MAX, table.seed))
}

/// All processes are one member, so that they are numbered on.
fn processes(table: &Table<'_>, spec: &LoadSpec) -> Result<Member, Fault> {
    let mut all = Vec::new();
    for (index, kind) in spec.process.iter().enumerate() {
        let made = kind.build(table.volumes, seed_of(table.seed, all.len() as u64));
        let fault = |error: crate::process::SyntheticError| {
            Fault::new(format!("process[{index}].{}", error.key()), error.to_string())
        };
        all.extend(made.map_err(fault)?);
    }
    let sources = all.len() as u32;
    let load = Processes::new(all, u64::MAX).map_err(|error| Fault::new("process", error.to_string()))?;
    let load = load.sharing(spec.processors.unwrap_or(sources));
    let load = if spec.idle_cpu_never_wakes { load.idle_cpu_never_wakes() } else { load };
    Ok(Member { load: Box::new(load), device: 0, sources })
}
