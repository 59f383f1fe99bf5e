//! The reserved region: sectors of the disk that hold the copies and are hidden from every layer above.
//!
//! It is one run of sectors or several, such as tracks of a track map. The visible sectors are numbered without it, so a sector behind
//! it has a visible number smaller by what the region holds before it. A *home* is the place of a visible sector on the disk.

use super::error::outside;
use headstack_model::Lbn;
use headstack_model::spec::Fault;

/// A run of reserved sectors.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReservedRun {
    /// Its first sector on the disk.
    pub first: Lbn,
    /// How many.
    pub sectors: u64,
}

/// A place for one copy in the region.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RegionSlot {
    /// Its first sector on the disk.
    pub lbn: Lbn,
    /// Its cylinder, or another number that grows with the distance from one end of the region.
    pub cylinder: u32,
    /// Its track, or the same as its cylinder where tracks are unknown.
    pub track: u32,
}

/// The sectors of a disk that are reserved.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReservedRegion {
    disk_sectors: u64,
    runs: Vec<ReservedRun>,
    /// For each run, the visible number of the first sector behind it, and the reserved sectors up to there.
    behind: Vec<(u64, u64)>,
}

impl ReservedRegion {
    /// A region on a disk of `disk_sectors` sectors. Runs that adjoin count as one.
    ///
    /// *Errors:* no run, an empty one, one that reaches beyond the disk or overlaps another, or no sector that is left.
    pub fn new(disk_sectors: u64, mut runs: Vec<ReservedRun>) -> Result<ReservedRegion, Fault> {
        runs.sort_unstable_by_key(|run| run.first);
        let mut joined: Vec<ReservedRun> = Vec::new();
        for run in runs {
            let end = run.first.0.saturating_add(run.sectors);
            if run.sectors == 0 || end > disk_sectors {
                let met = format!("{} sectors from sector {}", run.sectors, run.first);
                return Err(outside("runs", met, format!("the disk's {disk_sectors} sectors")));
            }
            match joined.last_mut() {
                Some(last) if last.first + last.sectors > run.first => {
                    let met = format!("sector {} twice", run.first);
                    return Err(outside("runs", met, "runs that do not overlap"));
                }
                Some(last) if last.first + last.sectors == run.first => last.sectors += run.sectors,
                _ => joined.push(run),
            }
        }
        let reserved: u64 = joined.iter().map(|run| run.sectors).sum();
        if joined.is_empty() || reserved >= disk_sectors {
            let allowed = format!("1 to {} of the disk's sectors", disk_sectors.saturating_sub(1));
            return Err(outside("blocks", format!("{reserved} sectors"), allowed));
        }
        let mut hidden = 0;
        let behind = |run: &ReservedRun| {
            let visible = run.first.0 - hidden;
            hidden += run.sectors;
            (visible, hidden)
        };
        Ok(ReservedRegion { disk_sectors, behind: joined.iter().map(behind).collect(), runs: joined })
    }

    /// Its runs, in rising order.
    pub fn runs(&self) -> &[ReservedRun] {
        &self.runs
    }

    /// Sectors of the disk, the region among them.
    pub fn disk_sectors(&self) -> u64 {
        self.disk_sectors
    }

    /// Sectors that are left: the size of the disk as it appears from above.
    pub fn visible_sectors(&self) -> u64 {
        self.disk_sectors - self.reserved_sectors()
    }

    /// Sectors of the region.
    pub fn reserved_sectors(&self) -> u64 {
        self.behind.last().map_or(0, |(_, hidden)| *hidden)
    }

    /// The number of runs before a visible sector.
    #[inline]
    fn runs_before(&self, visible: Lbn) -> usize {
        match &self.behind[..] {
            [(first, _)] => usize::from(*first <= visible.0),
            behind => behind.partition_point(|(first, _)| *first <= visible.0),
        }
    }

    /// The home of a visible sector, and the sectors from there on that are contiguous.
    #[inline]
    pub fn home(&self, visible: Lbn) -> (Lbn, u64) {
        let before = self.runs_before(visible);
        let hidden = before.checked_sub(1).map_or(0, |last| self.behind[last].1);
        let end = self.behind.get(before).map_or(self.visible_sectors(), |(first, _)| *first);
        (visible + hidden, end.saturating_sub(visible.0))
    }

    /// The first home of a run of visible sectors; `None` if the region divides it.
    #[inline]
    pub(super) fn home_of_run(&self, visible: Lbn, sectors: u32) -> Option<Lbn> {
        if let [(first, hidden)] = self.behind[..] {
            // One run of sectors is the usual region.
            let is_behind = visible.0 >= first;
            let is_whole = is_behind || visible.0 + u64::from(sectors) <= first;
            return is_whole.then_some(if is_behind { visible + hidden } else { visible });
        }
        self.home_of_run_among_many(visible, sectors)
    }

    #[inline(never)]
    fn home_of_run_among_many(&self, visible: Lbn, sectors: u32) -> Option<Lbn> {
        let (home, contiguous) = self.home(visible);
        (contiguous >= u64::from(sectors)).then_some(home)
    }

    /// The visible number of a sector of the disk; `None` within the region.
    pub fn visible(&self, sector: Lbn) -> Option<Lbn> {
        let before = self.runs.partition_point(|run| run.first <= sector);
        let Some(last) = before.checked_sub(1) else { return Some(sector) };
        let run = self.runs[last];
        (sector >= run.first + run.sectors).then(|| Lbn(sector.0 - self.behind[last].1))
    }

    /// The run that holds a sector of the disk, and the first sector of the next run, or the end of the disk.
    pub(super) fn run_at(&self, sector: Lbn) -> (Option<ReservedRun>, Lbn) {
        let before = self.runs.partition_point(|run| run.first <= sector);
        let next = self.runs.get(before).map_or(Lbn(self.disk_sectors), |run| run.first);
        let last = before.checked_sub(1).map(|last| self.runs[last]);
        (last.filter(|run| sector < run.first + run.sectors), next)
    }

    /// Slots of `block_sectors` sectors, packed without gaps from the start of each run. `place_of` returns the cylinder and the track of
    /// a sector.
    pub fn slots(&self, block_sectors: u64, place_of: impl Fn(Lbn) -> (u32, u32)) -> Vec<RegionSlot> {
        let of_run = |run: &ReservedRun| {
            let first = run.first;
            (0..run.sectors / block_sectors).map(move |number| first + number * block_sectors)
        };
        let slot = |lbn| {
            let (cylinder, track) = place_of(lbn);
            RegionSlot { lbn, cylinder, track }
        };
        self.runs.iter().flat_map(of_run).map(slot).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn run(first: u64, sectors: u64) -> ReservedRun {
        ReservedRun { first: Lbn(first), sectors }
    }

    proptest! {
        #[test]
        fn home_is_a_bijection_onto_all_sectors_outside_the_region(
            runs in prop::collection::btree_set(0u64..20, 1..6),
        ) {
            let runs: Vec<ReservedRun> = runs.into_iter().map(|number| run(number * 5, 3)).collect();
            let region = ReservedRegion::new(100, runs.clone()).expect("the runs fit");
            let mut homes = Vec::new();
            for visible in (0..region.visible_sectors()).map(Lbn) {
                let (home, contiguous) = region.home(visible);
                prop_assert_eq!(region.visible(home), Some(visible));
                prop_assert!(contiguous > 0);
                for further in 0..contiguous {
                    prop_assert_eq!(region.home(visible + further).0, home + further);
                    prop_assert_eq!(region.home_of_run(visible, further as u32 + 1), Some(home));
                }
                if visible.0 + contiguous < region.visible_sectors() {
                    prop_assert_eq!(region.home_of_run(visible, contiguous as u32 + 1), None);
                }
                homes.push(home.0);
            }
            let is_reserved = |sector: &u64| runs.iter().any(|run| (run.first.0..run.first.0 + 3).contains(sector));
            let others: Vec<u64> = (0..100).filter(|sector| !is_reserved(sector)).collect();
            prop_assert_eq!(homes, others);
            prop_assert!((0..100).filter(is_reserved).all(|sector| region.visible(Lbn(sector)).is_none()));
        }
    }

    #[test]
    fn slots_are_packed_in_each_run() {
        let region = ReservedRegion::new(1000, vec![run(200, 20), run(100, 25)]).expect("the runs fit");
        let slots = region.slots(8, |lbn| ((lbn.0 / 100) as u32, (lbn.0 / 10) as u32));
        let places: Vec<(u64, u32, u32)> =
            slots.iter().map(|slot| (slot.lbn.0, slot.cylinder, slot.track)).collect();
        assert_eq!(places, [(100, 1, 10), (108, 1, 10), (116, 1, 11), (200, 2, 20), (208, 2, 20)]);
    }

    #[test]
    fn impossible_region_is_rejected_with_what_was_met() {
        let error = |runs: Vec<ReservedRun>| {
            ReservedRegion::new(100, runs).expect_err("the region is impossible").to_string()
        };
        assert_eq!(error(vec![]), "blocks: 0 sectors is outside 1 to 99 of the disk's sectors");
        assert_eq!(error(vec![run(0, 100)]), "blocks: 100 sectors is outside 1 to 99 of the disk's sectors");
        assert_eq!(
            error(vec![run(90, 11)]),
            "runs: 11 sectors from sector 90 is outside the disk's 100 sectors"
        );
        assert_eq!(
            error(vec![run(9, u64::MAX)]).split(" is outside").nth(1),
            Some(" the disk's 100 sectors")
        );
        assert_eq!(error(vec![run(9, 0)]), "runs: 0 sectors from sector 9 is outside the disk's 100 sectors");
        let twice = error(vec![run(50, 10), run(59, 1)]);
        assert_eq!(twice, "runs: sector 59 twice is outside runs that do not overlap");
    }
}
