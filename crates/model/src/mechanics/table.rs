//! A compact table of rising or falling times. A simulator looks a seek up for every access, at random, and a plain table of a
//! drive of today (360,000 distances, 1.4 MB) does not fit the L1 and L2 caches.
//!
//! A block of distances is stored as a line with the few nanoseconds by which each time is off it; a block that is not a line is
//! stored in full. Every time is returned exactly.

const BLOCK: usize = 64;

/// Binary places of a line's slope.
const FRACTION: u32 = 20;

/// The slope of a block whose times are stored in full.
const IN_FULL: i32 = i32::MIN;

/// A line with the deviations of the times, or the index of a block in full: contiguous, so that a look-up waits for memory once.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Block {
    /// The block's first time in ns, or the place of that time among those in full.
    first: u32,
    /// Nanoseconds from one distance to the next, in 2⁻²⁰ ns.
    slope: i32,
    /// Deviation of each time from the line, plus 8 ns: 0 to 15, two per byte.
    offsets: [u8; BLOCK / 2],
}

impl Block {
    fn new(first: u32, slope: i32) -> Block {
        Block { first, slope, offsets: [0; BLOCK / 2] }
    }

    /// The line's time at a place in the block.
    #[inline]
    fn line(&self, place: usize) -> i64 {
        i64::from(self.first) + ((i64::from(self.slope) * place as i64) >> FRACTION)
    }
}

/// Distances up to which the times are stored in full: 256 KiB, which the L2 cache holds.
const FEW: usize = 1 << 16;

/// Times in ns by distance.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Table {
    InFull(Vec<u32>),
    Lines(Lines),
}

impl Table {
    pub(super) fn new(times: Vec<u32>) -> Table {
        if times.len() <= FEW { Table::InFull(times) } else { Table::Lines(Lines::new(&times)) }
    }

    pub(super) fn len(&self) -> usize {
        match self {
            Table::InFull(times) => times.len(),
            Table::Lines(lines) => lines.len,
        }
    }

    /// The time at a distance. Panics beyond the last.
    #[inline]
    pub(super) fn time(&self, distance: u32) -> u32 {
        match self {
            Table::InFull(times) => times[distance as usize],
            Table::Lines(lines) => lines.time(distance),
        }
    }
}

#[derive(Clone, Debug, PartialEq)]
pub(super) struct Lines {
    blocks: Vec<Block>,
    in_full: Vec<u32>,
    len: usize,
}

impl Lines {
    fn new(times: &[u32]) -> Lines {
        let mut table = Lines {
            blocks: Vec::with_capacity(times.len().div_ceil(BLOCK)),
            in_full: Vec::new(),
            len: times.len(),
        };
        for block in times.chunks(BLOCK) {
            match line_through(block).and_then(|line| with_offsets(line, block)) {
                Some(line) => table.blocks.push(line),
                None => {
                    table.blocks.push(Block::new(table.in_full.len() as u32, IN_FULL));
                    table.in_full.extend_from_slice(block);
                }
            }
        }
        table
    }

    #[inline]
    fn time(&self, distance: u32) -> u32 {
        let distance = distance as usize;
        assert!(distance < self.len, "a seek over {distance} cylinders, of {}", self.len);
        let (block, place) = (&self.blocks[distance / BLOCK], distance % BLOCK);
        if block.slope == IN_FULL {
            return self.in_full[block.first as usize + place];
        }
        let offset = (block.offsets[place / 2] >> (4 * (place % 2))) & 15;
        (block.line(place) + i64::from(offset) - 8) as u32
    }
}

/// The line from the first to the last time of a block, where its slope can be kept.
fn line_through(block: &[u32]) -> Option<Block> {
    let (first, last) = (block[0], block[block.len() - 1]);
    let steps = (block.len() as i64 - 1).max(1);
    let slope = ((i64::from(last) - i64::from(first)) << FRACTION) / steps;
    let slope = i32::try_from(slope).ok().filter(|slope| *slope != IN_FULL)?;
    Some(Block::new(first, slope))
}

/// A line with the deviation of each time, if none exceeds 7 ns.
fn with_offsets(mut line: Block, block: &[u32]) -> Option<Block> {
    for (place, time) in block.iter().enumerate() {
        let offset = u8::try_from(i64::from(*time) - line.line(place) + 8).ok().filter(|o| *o < 16)?;
        line.offsets[place / 2] |= offset << (4 * (place % 2));
    }
    Some(line)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn line_table_reproduces_every_time(
            runs in prop::collection::vec((any::<u32>(), -9_000i64..9_000, 0i64..20, 1usize..200), 1..6),
        ) {
            let time = |(start, slope, noise, _): (u32, i64, i64, usize), place: usize| {
                let off = if noise == 0 { 0 } else { place as i64 * 7919 % noise };
                (i64::from(start) + slope * place as i64 / 16 + off).clamp(0, i64::from(u32::MAX)) as u32
            };
            let times: Vec<u32> =
                runs.iter().flat_map(|run| (0..run.3).map(|place| time(*run, place))).collect();
            let table = Lines::new(&times);
            for (distance, time) in times.iter().enumerate() {
                prop_assert_eq!(table.time(distance as u32), *time);
            }
        }
    }

    #[test]
    fn square_root_curve_is_stored_as_lines() {
        let times: Vec<u32> =
            (0..360_000).map(|d| (1e6 + 2e4 * f64::from(d).sqrt()).round() as u32).collect();
        let table = Lines::new(&times);
        assert!(table.in_full.len() < 10_000, "{} times in full", table.in_full.len());
        assert!((0..360_000).all(|d| table.time(d) == times[d as usize]));
    }
}
