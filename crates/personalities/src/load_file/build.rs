//! Builds loads from keys, over the volumes of a rig.

use headstack_model::Instant;
use headstack_model::spec::Fault;

use super::benchmark_build::{bonnie, hdparm, iozone};
use super::spec::{BlocksSpec, BurstSpec, LoadSpec, Order, StreamSpec};
use super::table::{Place, Table};
use headstack_workload::VolumeInfo;
use headstack_workload::process::{BurstShape, Processes, ThinkShape};
use headstack_workload::seed_of;
use headstack_workload::{
    Closed, DriftShape, Drifting, Member, Mix, Open, Pattern, Shape, Spacing, StreamShape, Streams,
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
    if let Some(table) = &spec.bonnie {
        add("bonnie".to_string(), &|context| bonnie(context, table))?;
    }
    if let Some(table) = &spec.hdparm {
        add("hdparm".to_string(), &|context| hdparm(context, table))?;
    }
    if let Some(table) = &spec.iozone {
        add("iozone".to_string(), &|context| iozone(context, table))?;
    }
    if !spec.process.is_empty() {
        add(String::new(), &|context| processes(context, spec))?;
    }
    let end = spec.max_time_s.map_or(Instant::MAX, |seconds| Instant::from_ms(seconds * 1e3));
    let mix = Mix::new(members, spec.requests.unwrap_or(u64::MAX), end);
    mix.map_err(|error| Fault::new("", error.to_string()))
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
        popularity: spec.popularity.clone().unwrap_or(headstack_workload::Popularity::Even),
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

/// Combines all processes into one member, so that they are numbered consecutively.
fn processes(table: &Table<'_>, spec: &LoadSpec) -> Result<Member, Fault> {
    let mut all = Vec::new();
    for (index, kind) in spec.process.iter().enumerate() {
        let made = kind.build(table.volumes, seed_of(table.seed, all.len() as u64));
        let fault = |error: headstack_workload::process::SyntheticError| {
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
