//! How far the arm moves, in blocks of the disk, with the copies and without: what rearrangement saves, as far as block numbers show.

use headstack_model::Lbn;

/// Sums of the distances from the end of each request to the first sector of the next. Copying, the table and flushes do not count.
///
/// *Units:* blocks of the region, rounded down per request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SeekDistance {
    block_sectors: u64,
    /// With the copies.
    pub blocks: u64,
    /// If every block were at its home.
    pub home_blocks: u64,
    /// The end of the last command.
    end: Lbn,
    home_end: Lbn,
}

impl SeekDistance {
    pub(super) fn new(block_sectors: u64) -> SeekDistance {
        SeekDistance { block_sectors, ..SeekDistance::default() }
    }

    /// Blocks that the arm moved less; below 0 where it moved more.
    pub fn saved_blocks(&self) -> i64 {
        self.home_blocks as i64 - self.blocks as i64
    }

    /// The nearer one of two places.
    pub(super) fn nearest(&self, lbn: Lbn, other: Option<Lbn>) -> Lbn {
        let nearer = |other: &Lbn| other.0.abs_diff(self.end.0) < lbn.0.abs_diff(self.end.0);
        other.filter(nearer).unwrap_or(lbn)
    }

    pub(super) fn note_command(&mut self, lbn: Lbn, sectors: u64) {
        self.blocks += lbn.0.abs_diff(self.end.0) / self.block_sectors;
        self.end = lbn + sectors;
    }

    pub(super) fn note_home(&mut self, home: Lbn, sectors: u64) {
        self.home_blocks += home.0.abs_diff(self.home_end.0) / self.block_sectors;
        self.home_end = home + sectors;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_near_each_other_in_the_region_save_the_way_between_their_homes() {
        let mut distance = SeekDistance::new(8);
        for (home, copy) in [(8000, 80_000), (0, 80_008), (16_000, 80_016)] {
            distance.note_home(Lbn(home), 8);
            distance.note_command(Lbn(copy), 8);
        }
        assert_eq!((distance.home_blocks, distance.blocks), (1000 + 1001 + 1999, 10_000));
        assert_eq!(distance.nearest(Lbn(0), Some(Lbn(80_000))), Lbn(80_000));
        assert_eq!(distance.nearest(Lbn(80_024), Some(Lbn(0))), Lbn(80_024));
        assert_eq!(distance.saved_blocks(), -6000);
    }
}
