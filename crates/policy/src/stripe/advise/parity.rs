//! What a write does on an array with rotated parity (RAID-5).
//!
//! A write of whole rows writes data and parity at once. A part of a row first reads what the new parity follows from, by the method
//! with fewer reads: the old data and the old parity (read-modify-write), or the rest of the row (reconstruct-write; on a tie, too).
//! The writes begin when all these reads are complete.
//!
//! Assumption: a request begins with a row, or of more than a row anywhere in one: it then writes parts of two rows at its ends, for
//! whose parity each data disk reads a unit. Not modelled: an array's memory, and locks on rows.
//!
//! *Source:* Chen, Lee, Gibson, Katz and Patterson, "RAID: high-performance, reliable secondary storage" (1994), section 4; the tie:
//! Linux 6.12, `drivers/md/raid5.c`, `handle_stripe_dirtying`.

/// Accesses that begin together, one on each of some disks. The next stage of a request begins when all of them are complete.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct ForkStage {
    /// Share of the requests that have this stage.
    pub(super) share: f64,
    /// Disks that it uses.
    pub(super) disks: f64,
    /// Blocks on each of them.
    pub(super) sectors: f64,
    /// Whether it writes the blocks that the stage before read.
    pub(super) rewrites: bool,
}

/// The stages of the writes of `sectors` blocks in `units` units of `unit` blocks on `disks` disks; `share`: how many of all requests
/// are such writes.
pub(super) fn write_stages(
    share: f64,
    sectors: f64,
    (units, unit): (f64, f64),
    disks: f64,
    begins_with_row: bool,
) -> Vec<ForkStage> {
    let width = disks - 1.0;
    let rows = (units / width).floor();
    let rest = units - rows * width;
    let stage = |disks, sectors, rewrites| ForkStage { share, disks, sectors, rewrites };
    let written = stage(disks, (sectors + (rows + 1.0) * unit.min(sectors)) / disks, false);
    if !begins_with_row && rows >= 1.0 {
        return vec![stage(width, unit, false), written];
    }
    if rest < 1.0 {
        return vec![stage(disks, sectors / width, false)];
    }
    let piece = unit.min(sectors);
    let (modify, reconstruct) = (rest + 1.0, width - rest);
    let rewrites = modify < reconstruct;
    let reads = stage(modify.min(reconstruct), piece, false);
    let writes = if rows < 1.0 { stage(rest + 1.0, piece, rewrites) } else { written };
    vec![reads, writes]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stages(sectors: f64, unit: f64) -> Vec<(f64, f64, bool)> {
        let all = write_stages(1.0, sectors, ((sectors / unit).ceil(), unit), 5.0, true);
        all.iter().map(|stage| (stage.disks, stage.sectors, stage.rewrites)).collect()
    }

    #[test]
    fn write_of_whole_rows_reads_nothing() {
        assert_eq!(stages(1024.0, 256.0), [(5.0, 256.0, false)]);
        assert_eq!(stages(1024.0, 16.0), [(5.0, 256.0, false)]);
    }

    #[test]
    fn write_of_rows_that_begins_within_one_reads_for_both_ends() {
        let all = write_stages(1.0, 1024.0, (64.0, 16.0), 5.0, false);
        let found: Vec<_> = all.iter().map(|stage| (stage.disks, stage.sectors)).collect();
        assert_eq!(found, [(4.0, 16.0), (5.0, (1024.0 + 17.0 * 16.0) / 5.0)]);
    }

    #[test]
    fn small_write_reads_old_data_and_parity() {
        assert_eq!(stages(8.0, 128.0), [(2.0, 8.0, false), (2.0, 8.0, true)]);
    }

    #[test]
    fn half_a_row_is_reconstructed() {
        assert_eq!(stages(256.0, 128.0), [(2.0, 128.0, false), (3.0, 128.0, false)]);
    }

    #[test]
    fn part_of_a_row_behind_whole_rows_is_read_first() {
        assert_eq!(stages(5.0 * 64.0, 64.0), [(2.0, 64.0, false), (5.0, (5.0 + 2.0) * 64.0 / 5.0, false)]);
    }
}
