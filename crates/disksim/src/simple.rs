//! `disksim_simpledisk`: a disk whose accesses all take the same time.

use crate::drive::{us_of_ms, with_default_electronics};
use crate::fields::{Fields, Notes};
use crate::parse::Block;
use crate::{electronics, mechanics};
use headstack_model::SpecError;
use headstack_model::spec::{
    BusSpec, CacheSpec, DriveSpec, GeometrySpec, Layout, MechanicsSpec, OverheadSet, OverheadSpec, SeekSpec,
    Sparing, Zone,
};

/// Number of tracks for its blocks. It affects no time, only orders by cylinder.
const TRACKS: u32 = 100_000;

pub(crate) fn convert(block: &Block, origin: &str, notes: &Notes) -> Result<DriveSpec, SpecError> {
    let mut fields = Fields::new(block, notes);
    let blocks = fields.count("Block count")?.max(1);
    let access_ms = fields.number("Access time")?;
    let overhead_ms = fields.number_or_zero("Command overhead")?;
    let per_sector = us_of_ms(fields.number_or_zero("Bulk sector transfer time")?);
    let connect_ms = fields.number_or_zero("Bus transaction latency")?;
    let never_disconnects = fields.flag("Never disconnect")?;
    let queue = electronics::queue(&mut fields)?;
    fields.skip("Print stats", crate::topology::PRINTS);
    fields.finish();
    let set = OverheadSet { read_miss_ms: overhead_ms, write_ms: overhead_ms, ..OverheadSet::default() };
    // The format requires a speed, which has no effect.
    let mechanics = MechanicsSpec {
        constant_access_ms: Some(access_ms),
        ..mechanics::plain(6_000.0, SeekSpec::default())
    };
    Ok(DriveSpec {
        overhead: OverheadSpec { after_read: set, after_write: set, ..OverheadSpec::default() },
        cache: CacheSpec { enabled: false, ..CacheSpec::default() },
        bus: BusSpec {
            read_us_per_sector: per_sector,
            write_us_per_sector: per_sector,
            never_disconnects,
            disconnect_read_after_read_ms: connect_ms,
            disconnect_read_after_write_ms: connect_ms,
            disconnect_write_ms: connect_ms,
            reconnect_first_ms: connect_ms,
            reconnect_other_ms: connect_ms,
            ..BusSpec::default()
        },
        queue,
        ..with_default_electronics(block, origin, u64::from(blocks), geometry(blocks), mechanics)
    })
}

/// Tracks for `blocks` blocks, one per cylinder.
fn geometry(blocks: u32) -> GeometrySpec {
    let sectors_per_track = blocks.div_ceil(TRACKS);
    let cylinders = blocks.div_ceil(sectors_per_track);
    let zone = Zone {
        first_cylinder: 0,
        last_cylinder: cylinders - 1,
        sectors_per_track,
        first_sector_offset_sectors: 0.0,
        track_skew_sectors: 0.0,
        cylinder_skew_sectors: 0.0,
        front_gap_sectors: 0,
        spares: 0,
        slips: Vec::new(),
        remaps: Vec::new(),
    };
    GeometrySpec {
        heads: 1,
        cylinders,
        layout: Layout::Cylinder,
        sparing: Sparing::None,
        slip_to_end: false,
        range_cylinders: None,
        zones: vec![zone],
        band_zones: Vec::new(),
        extents: None,
    }
}
