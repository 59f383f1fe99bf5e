//! Where in the region each hot block goes.
//!
//! *Source:* organ pipe: C. K. Wong, "Minimizing expected head movement" (1980), for independent references, as Akyürek and Salem use
//! it; serial: Akyürek and Salem 1995. `rotational` is ours.

use super::analyzer::HotBlock;
use super::region::RegionSlot;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;

/// Slots between two blocks of a track that follow each other by number, with `rotational`: the host needs time for the next request.
/// *Source:* assumption.
const INTERLEAVE: usize = 2;

/// How hot blocks are placed in the region.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum HotPlacement {
    /// The hottest blocks on the middle cylinder, the next ones on the cylinders on either side of it, and so on. Within a cylinder
    /// blocks keep the order of their numbers.
    #[default]
    OrganPipe,
    /// In the order of their numbers.
    Serial,
    /// The hottest blocks together on one track, the next ones on the next track of the cylinder; cylinders as with `organ-pipe`.
    /// Within a track a block and the next by number are one slot apart, so that it can follow without a turn.
    Rotational,
}

impl HotPlacement {
    /// All ways.
    pub fn all() -> [HotPlacement; 3] {
        [HotPlacement::OrganPipe, HotPlacement::Serial, HotPlacement::Rotational]
    }

    /// The slot of each hot block. `hot` falls by count and has at most one block per slot; `slots` rise by cylinder and track.
    /// `current` returns the slot that has a block now: a block stays there if its slot would only change within a cylinder
    /// (`organ-pipe`) or a track (`rotational`).
    pub fn assign(
        self,
        hot: &[HotBlock],
        slots: &[RegionSlot],
        current: impl Fn(u64) -> Option<u32>,
    ) -> Vec<u32> {
        assert!(hot.len() <= slots.len(), "each block has a slot");
        if self == HotPlacement::Serial {
            let mut by_number: Vec<usize> = (0..hot.len()).collect();
            by_number.sort_unstable_by_key(|rank| hot[*rank].block);
            let mut assigned = vec![0; hot.len()];
            by_number.iter().enumerate().for_each(|(slot, rank)| assigned[*rank] = slot as u32);
            return assigned;
        }
        let groups = self.groups(slots);
        let mut group_of = vec![0; slots.len()];
        for (number, group) in groups.iter().enumerate() {
            group.iter().for_each(|slot| group_of[*slot as usize] = number);
        }
        let mut assigned = Vec::with_capacity(hot.len());
        for (number, group) in groups.iter().enumerate() {
            let dealt = &hot[assigned.len()..hot.len().min(assigned.len() + group.len())];
            let stays = |block| current(block).filter(|slot| group_of[*slot as usize] == number);
            assigned.extend(fill(dealt, group, stays));
        }
        assigned
    }

    /// The slots in the order in which the hottest blocks take them.
    pub(super) fn by_dwell(self, slots: &[RegionSlot]) -> Vec<u32> {
        match self {
            HotPlacement::Serial => (0..slots.len() as u32).collect(),
            _ => self.groups(slots).concat(),
        }
    }

    /// The slots by group, the one for the hottest blocks first.
    fn groups(self, slots: &[RegionSlot]) -> Vec<Vec<u32>> {
        let cylinders = runs_of_equal(0..slots.len() as u32, |slot| slots[slot as usize].cylinder);
        let order = organ_pipe(cylinders.len());
        let by_dwell = order.into_iter().map(|place| cylinders[place].clone());
        match self {
            HotPlacement::Rotational => {
                let tracks = |cylinder: Vec<u32>| runs_of_equal(cylinder, |slot| slots[slot as usize].track);
                by_dwell.flat_map(tracks).map(interleaved).collect()
            }
            HotPlacement::OrganPipe | HotPlacement::Serial => by_dwell.collect(),
        }
    }
}

/// The places 0 to `count` - 1 from the middle outward, alternately on either side.
pub fn organ_pipe(count: usize) -> Vec<usize> {
    let middle = count / 2;
    let place = |step: usize| match step % 2 {
        0 => middle + step / 2,
        _ => middle - step.div_ceil(2),
    };
    (0..count).map(place).collect()
}

/// Slots in runs of equal keys.
fn runs_of_equal(slots: impl IntoIterator<Item = u32>, key: impl Fn(u32) -> u32) -> Vec<Vec<u32>> {
    let mut runs: Vec<Vec<u32>> = Vec::new();
    for slot in slots {
        match runs.last_mut().filter(|run| key(run[0]) == key(slot)) {
            Some(run) => run.push(slot),
            None => runs.push(vec![slot]),
        }
    }
    runs
}

/// Slots of a track in the order in which successive blocks take them.
fn interleaved(track: Vec<u32>) -> Vec<u32> {
    (0..INTERLEAVE).flat_map(|first| track.iter().copied().skip(first).step_by(INTERLEAVE)).collect()
}

/// The slots of some hot blocks in a group of slots: blocks for which `stays` returns their slot keep it, the others fill the group up
/// by their numbers.
fn fill(hot: &[HotBlock], group: &[u32], stays: impl Fn(u64) -> Option<u32>) -> Vec<u32> {
    let mut assigned: Vec<Option<u32>> = hot.iter().map(|hot| stays(hot.block)).collect();
    let taken: BTreeSet<u32> = assigned.iter().copied().flatten().collect();
    let free = group.iter().copied().filter(|slot| !taken.contains(slot));
    let mut arriving: Vec<usize> = (0..hot.len()).filter(|rank| assigned[*rank].is_none()).collect();
    arriving.sort_unstable_by_key(|rank| hot[*rank].block);
    arriving.iter().zip(free).for_each(|(rank, slot)| assigned[*rank] = Some(slot));
    assigned.into_iter().map(|slot| slot.expect("a group has a slot for each block dealt to it")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use headstack_model::Lbn;
    use proptest::prelude::*;

    fn slots(cylinders: u32, tracks: u32, per_track: u32) -> Vec<RegionSlot> {
        let slot = |number: u32| RegionSlot {
            lbn: Lbn(u64::from(number) * 8),
            cylinder: number / per_track / tracks,
            track: number / per_track,
        };
        (0..cylinders * tracks * per_track).map(slot).collect()
    }

    fn hot(counts: &[u64]) -> Vec<HotBlock> {
        // The numbers of the blocks are in no order.
        let block = |rank: usize| (rank as u64 * 7919) % 1000;
        let of = |(rank, &count): (usize, &u64)| HotBlock { block: block(rank), count, error: 0 };
        counts.iter().enumerate().map(of).collect()
    }

    /// The expected distance between two independent references, times the square of all references.
    fn distance(counts: &[u64], cylinder: impl Fn(usize) -> u64) -> u64 {
        let pairs = (0..counts.len()).flat_map(|one| (0..counts.len()).map(move |other| (one, other)));
        pairs.map(|(one, other)| counts[one] * counts[other] * cylinder(one).abs_diff(cylinder(other))).sum()
    }

    /// The least distance of all permutations, by Heap's algorithm.
    fn brute_force(counts: &[u64]) -> u64 {
        let mut places: Vec<u64> = (0..counts.len() as u64).collect();
        let mut state = vec![0; counts.len()];
        let mut least = distance(counts, |item| places[item]);
        let mut item = 1;
        while item < counts.len() {
            if state[item] < item {
                places.swap(if item % 2 == 0 { 0 } else { state[item] }, item);
                least = least.min(distance(counts, |item| places[item]));
                state[item] += 1;
                item = 1;
            } else {
                state[item] = 0;
                item += 1;
            }
        }
        least
    }

    fn falling(mut counts: Vec<u64>) -> Vec<u64> {
        counts.sort_unstable_by_key(|count| u64::MAX - count);
        counts
    }

    fn placed(counts: &[u64], placement: HotPlacement) -> Vec<u64> {
        let slots = slots(counts.len() as u32, 1, 1);
        let assigned = placement.assign(&hot(counts), &slots, |_| None);
        assigned.iter().map(|slot| u64::from(slots[*slot as usize].cylinder)).collect()
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]
        #[test]
        fn organ_pipe_equals_brute_force(counts in prop::collection::vec(0u64..100, 1..8).prop_map(falling)) {
            let cylinders = placed(&counts, HotPlacement::OrganPipe);
            prop_assert_eq!(distance(&counts, |item| cylinders[item]), brute_force(&counts));
        }

        #[test]
        fn every_placement_gives_each_block_a_slot_of_its_own(
            count in 0usize..=60,
            placed_before in prop::collection::btree_map(0u64..1000, 0u32..60, 0..60),
        ) {
            let (slots, hot) = (slots(5, 3, 4), hot(&vec![1; count]));
            // At most one block has a slot now.
            let mut taken = BTreeSet::new();
            let before: Vec<(u64, u32)> = placed_before.into_iter().filter(|(_, slot)| taken.insert(*slot)).collect();
            let current = |block: u64| before.iter().find(|(other, _)| *other == block).map(|(_, slot)| *slot);
            for placement in HotPlacement::all() {
                let assigned = placement.assign(&hot, &slots, current);
                prop_assert_eq!(assigned.len(), count);
                let distinct: BTreeSet<u32> = assigned.iter().copied().collect();
                prop_assert_eq!(distinct.len(), count, "{:?}", placement);
                prop_assert!(assigned.iter().all(|slot| (*slot as usize) < slots.len()));
                // An unchanged hot list changes nothing.
                let now = |block: u64| {
                    hot.iter().position(|hot| hot.block == block).map(|rank| assigned[rank])
                };
                prop_assert_eq!(placement.assign(&hot, &slots, now), assigned);
            }
        }
    }

    #[test]
    fn organ_pipe_equals_brute_force_on_nine_cylinders() {
        for counts in [vec![30, 20, 13, 9, 6, 4, 3, 2, 1], vec![9; 9], vec![100, 1, 1, 1, 1, 1, 1, 1, 1]] {
            let cylinders = placed(&counts, HotPlacement::OrganPipe);
            assert_eq!(distance(&counts, |item| cylinders[item]), brute_force(&counts), "{counts:?}");
        }
    }

    #[test]
    fn organ_pipe_alternates_around_the_middle() {
        assert_eq!(organ_pipe(5), [2, 1, 3, 0, 4]);
        assert_eq!(organ_pipe(4), [2, 1, 3, 0]);
        assert_eq!(organ_pipe(1), [0]);
        assert_eq!(organ_pipe(0), [0; 0]);
    }

    #[test]
    fn serial_placement_follows_the_numbers() {
        let hot = hot(&[9, 8, 7, 6]);
        let assigned = HotPlacement::Serial.assign(&hot, &slots(2, 1, 4), |_| None);
        let mut by_slot: Vec<(u32, u64)> =
            assigned.iter().zip(&hot).map(|(slot, hot)| (*slot, hot.block)).collect();
        by_slot.sort_unstable();
        assert!(by_slot.windows(2).all(|pair| pair[0].1 < pair[1].1), "{by_slot:?}");
    }

    #[test]
    fn rotational_placement_fills_track_by_track_with_a_gap() {
        let counts: Vec<u64> = (1..=8).rev().collect();
        let (slots, hot) = (slots(1, 2, 4), hot(&counts));
        let assigned = HotPlacement::Rotational.assign(&hot, &slots, |_| None);
        let track = |slot: &u32| slots[*slot as usize].track;
        assert_eq!(assigned.iter().map(track).collect::<Vec<_>>(), [0, 0, 0, 0, 1, 1, 1, 1]);
        let mut first: Vec<(u64, u32)> =
            hot.iter().zip(&assigned).take(4).map(|(hot, slot)| (hot.block, *slot)).collect();
        first.sort_unstable();
        assert_eq!(first.iter().map(|(_, slot)| *slot).collect::<Vec<_>>(), [0, 2, 1, 3]);
    }
}
