//! Track boundaries of a disk, for its stream scheduler.

use headstack_model::Lbn;
use headstack_streams::streams::Boundaries;
use headstack_tracks::TrackMap;

/// The track map of a disk, in bytes.
#[derive(Debug)]
pub(super) struct Tracks {
    map: TrackMap,
    /// Bytes of a block of the map.
    sector_bytes: u64,
    /// Boundaries are rounded down to multiples of this many bytes.
    block_bytes: u64,
}

impl Tracks {
    pub(super) fn new(map: TrackMap, sector_bytes: u32, block_bytes: u32) -> Tracks {
        Tracks { map, sector_bytes: sector_bytes.into(), block_bytes: block_bytes.into() }
    }
}

impl Boundaries for Tracks {
    fn next_boundary(&self, after: u64) -> u64 {
        let mut lbn = Lbn(after / self.sector_bytes);
        // A boundary within a block is rounded down, perhaps to no more than `after`.
        while let Some(next) = self.map.next_boundary(lbn) {
            let bytes = next.0 * self.sector_bytes;
            let whole = bytes - bytes % self.block_bytes;
            if whole > after {
                return whole;
            }
            lbn = next;
        }
        u64::MAX
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn next_track_boundary_rounds_down_to_whole_blocks() {
        let mut map = TrackMap::new();
        map.push(10, 2);
        map.push(5, 1);
        let tracks = Tracks::new(map.clone(), 512, 512);
        let ends: Vec<u64> = [0, 1, 5119, 5120, 10_240].map(|after| tracks.next_boundary(after)).into();
        assert_eq!(ends, [5120, 5120, 5120, 10_240, u64::MAX]);
        let whole = Tracks::new(map, 512, 4096);
        assert_eq!([0, 4096, 8192].map(|after| whole.next_boundary(after)), [4096, 8192, u64::MAX]);
    }
}
