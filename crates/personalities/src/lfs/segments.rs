//! The segment usage table: the place, length and live share of each segment.

use headstack_model::Lbn;
use headstack_workload::Region;

/// An entry of the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Segment {
    /// Its first sector.
    pub start: Lbn,
    /// Its length in sectors.
    pub sectors: u32,
    /// Its size in file-system blocks.
    pub blocks: u32,
    /// Number of live blocks.
    pub live: u32,
    /// When its youngest block was modified, as the number of blocks written up to then.
    pub youngest: u64,
}

/// Segments of any sizes, by their places.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SegmentTable {
    segments: Vec<Segment>,
}

impl SegmentTable {
    /// Segments of `sectors` each, as many as a region holds, with blocks of `block` sectors.
    pub fn fixed(region: Region, sectors: u32, block: u32) -> SegmentTable {
        let count = region.sectors.checked_div(sectors.into()).unwrap_or(0);
        let starts = (0..count).map(|number| region.first + number * u64::from(sectors));
        SegmentTable::new(starts.map(|start| (start, sectors)), block)
    }

    /// A segment for each run of `each` tracks between these boundaries, the last of which ends the last track.
    pub fn of_tracks(boundaries: &[Lbn], each: usize, block: u32) -> SegmentTable {
        let firsts = boundaries.iter().step_by(each.max(1));
        let runs = firsts.clone().zip(firsts.skip(1)).map(|(first, next)| {
            let sectors = u32::try_from(*next - *first).expect("a segment is below 2 TiB");
            (*first, sectors)
        });
        SegmentTable::new(runs, block)
    }

    /// Segments without a whole block are left out.
    fn new(segments: impl Iterator<Item = (Lbn, u32)>, block: u32) -> SegmentTable {
        assert!(block > 0, "a block is at least a sector");
        let entry = |(start, sectors): (Lbn, u32)| Segment {
            start,
            sectors,
            blocks: sectors / block,
            live: 0,
            youngest: 0,
        };
        SegmentTable { segments: segments.map(entry).filter(|segment| segment.blocks > 0).collect() }
    }

    /// The entries.
    pub fn segments(&self) -> &[Segment] {
        &self.segments
    }

    /// File-system blocks in all segments together.
    pub fn blocks(&self) -> u64 {
        self.segments.iter().map(|segment| u64::from(segment.blocks)).sum()
    }

    pub(super) fn segment(&mut self, number: u32) -> &mut Segment {
        &mut self.segments[number as usize]
    }
}
