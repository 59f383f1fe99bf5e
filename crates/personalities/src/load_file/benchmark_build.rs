//! Benchmarks over the volumes of a rig.

use headstack_model::Nanos;
use headstack_model::spec::Fault;

use super::benchmarks::{BonnieSpec, Ext2Spec, HdparmSpec, IozoneSpec, ProgramCostsSpec};
use super::table::{Place, Table};
use crate::benchmarks::{Bonnie, DeviceTiming, Iozone};
use crate::ext2::{BenchmarkPhase, Ext2Session, Ext2Shape, Ext2ShapeError, Ext2Volume, FileWorkCosts};
use headstack_workload::Member;

/// Share of the blocks, in percent, that only root may use, as mke2fs has it. Programs run as root.
const RESERVED_PERCENT: u32 = 5;

/// Share of a file's bytes, as a divisor, that its blocks of pointers take at most.
const POINTERS_SHARE: u64 = 64;

pub(super) fn bonnie(table: &Table<'_>, spec: &BonnieSpec) -> Result<Member, Fault> {
    let place = table.region_of(&spec.area)?;
    let volume = file_system(table, &place, &spec.ext2, "file_bytes", spec.file_bytes)?;
    let chunk_time = |us_per_byte: f64| Nanos::from_us(us_per_byte * spec.chunk_bytes as f64);
    let benchmark = Bonnie {
        file_bytes: spec.file_bytes,
        chunk_bytes: spec.chunk_bytes,
        children: spec.children,
        seeks: spec.seeks,
        rewrite_every: spec.rewrite_every,
        put_chunk: chunk_time(spec.costs.put_us_per_byte),
        get_chunk: chunk_time(spec.costs.get_us_per_byte),
        seed: table.seed,
    };
    Ok(member(&place, volume, benchmark.phases(), &spec.costs))
}

pub(super) fn iozone(table: &Table<'_>, spec: &IozoneSpec) -> Result<Member, Fault> {
    let place = table.region_of(&spec.area)?;
    let (processes, file_bytes) = (spec.processes, spec.bytes_each());
    let all = file_bytes.saturating_mul(u64::from(processes));
    let name = if spec.file_bytes.is_some() { "file_bytes" } else { "total_bytes" };
    let volume = file_system(table, &place, &spec.ext2, name, all)?;
    let benchmark = Iozone { processes, file_bytes, record_bytes: spec.record_bytes };
    Ok(member(&place, volume, benchmark.phases(), &spec.costs))
}

pub(super) fn hdparm(table: &Table<'_>, spec: &HdparmSpec) -> Result<Member, Fault> {
    let place = table.region_of(&spec.area)?;
    let left = place.region.sectors * place.sector_bytes;
    if spec.bytes > left {
        return Err(table.fault("bytes", format!("more than the {left} bytes of the area")));
    }
    let volume = file_system(table, &place, &Ext2Spec::default(), "bytes", 0)?;
    let benchmark = DeviceTiming { bytes: spec.bytes, request_bytes: spec.request_bytes };
    Ok(member(&place, volume, benchmark.phases(), &spec.costs))
}

/// The file system over an area, which must hold files of `bytes` bytes.
fn file_system(
    table: &Table<'_>,
    place: &Place,
    spec: &Ext2Spec,
    name: &str,
    bytes: u64,
) -> Result<Ext2Volume, Fault> {
    let block_bytes = u64::from(spec.block_bytes);
    let fault = |error: Ext2ShapeError| {
        let key = match error {
            Ext2ShapeError::BlockBytes(_) => "ext2.block_bytes",
            Ext2ShapeError::BytesPerInode(_) => "ext2.bytes_per_inode",
            Ext2ShapeError::Reserved(_) | Ext2ShapeError::Blocks(_) => "area",
        };
        table.fault(key, error.to_string())
    };
    if block_bytes > 0 && !block_bytes.is_multiple_of(place.sector_bytes) {
        let message =
            format!("{block_bytes} is no multiple of the volume's sectors of {} bytes", place.sector_bytes);
        return Err(table.fault("ext2.block_bytes", message));
    }
    let shape = Ext2Shape {
        block_bytes: spec.block_bytes,
        blocks: place.region.sectors * place.sector_bytes / block_bytes.max(1),
        bytes_per_inode: spec.bytes_per_inode,
        reserved_percent: RESERVED_PERCENT,
    };
    let geometry = shape.geometry().map_err(fault)?;
    let volume = Ext2Volume::new(geometry, spec.preallocate)
        .map_err(|error| table.fault("area", format!("the file system cannot be made: {error}")))?;
    let free: u64 = (0..geometry.groups).map(|group| u64::from(volume.free_blocks(group))).sum();
    let needed = (bytes + bytes / POINTERS_SHARE).div_ceil(block_bytes);
    if needed > free {
        let message =
            format!("{bytes} bytes do not fit in the {} free bytes of the area's ext2", free * block_bytes);
        return Err(table.fault(name, message));
    }
    Ok(volume)
}

fn member(
    place: &Place,
    volume: Ext2Volume,
    phases: Vec<BenchmarkPhase>,
    costs: &ProgramCostsSpec,
) -> Member {
    let costs = FileWorkCosts {
        call: Nanos::from_us(costs.call_us),
        write_kib: Nanos::from_us(costs.write_us_per_kib),
    };
    let session = Ext2Session::new(volume, place.region.first, place.sector_bytes as u32, phases);
    let session = session.with_costs(costs);
    Member { device: place.device, sources: session.sources(), load: Box::new(session) }
}
