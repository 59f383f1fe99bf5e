//! Cylinder shuffling: all cylinders of a disk are permuted so that the most referenced ones are in the middle.
//!
//! References are counted by cylinder over a period. At its end the data are moved, whole cylinders at a time, into the order of the
//! organ pipe. Nothing changes within a cylinder, so references that follow each other in one cylinder still do, and no others.
//!
//! All cylinders must hold equally many sectors, as on disks without zones. Cylinders with equal counts are placed in the order of their
//! numbers. *Not modelled:* a threshold of gain below which nothing is moved.
//!
//! *Source:* P. Vongsathorn, S. D. Carson, "A system for adaptive disk rearrangement" (Software: Practice and Experience 20(3), 1990), as R.
//! S. Gray's thesis of 2000 describes it.

use super::placement::organ_pipe;

/// A move of a home cylinder's data from one place to another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CylinderMove {
    /// The cylinder that the data are numbered by.
    pub home: u32,
    /// The cylinder that holds them.
    pub from: u32,
    /// The cylinder to which they move.
    pub to: u32,
}

/// Counts references by cylinder, and permutes the cylinders.
#[derive(Clone, Debug)]
pub struct CylinderShuffle {
    /// References in the period, by home cylinder.
    counts: Vec<u64>,
    /// The cylinder that holds the data of each home cylinder.
    places: Vec<u32>,
}

impl CylinderShuffle {
    /// A disk with this number of cylinders, all of them at home.
    pub fn new(cylinders: u32) -> CylinderShuffle {
        CylinderShuffle { counts: vec![0; cylinders as usize], places: (0..cylinders).collect() }
    }

    /// Counts a reference to a home cylinder.
    pub fn observe(&mut self, home: u32) {
        self.counts[home as usize] += 1;
    }

    /// References in the period, by home cylinder.
    pub fn counts(&self) -> &[u64] {
        &self.counts
    }

    /// The cylinder that holds the data of a home cylinder.
    pub fn place_of(&self, home: u32) -> u32 {
        self.places[home as usize]
    }

    /// Ends the period without a move.
    pub fn clear(&mut self) {
        self.counts.fill(0);
    }

    /// Ends the period: permutes the cylinders by its counts. Returns the moves in the order in which they can be made with memory for two
    /// cylinders: each goes where the next one comes from, or closes a cycle.
    pub fn shuffle(&mut self) -> Vec<CylinderMove> {
        self.shuffle_hottest(self.counts.len() as u32)
    }

    /// Ends the period as [`CylinderShuffle::shuffle`] does, for at most this number of cylinders: the most referenced ones get the places in
    /// the middle, by the organ pipe. Cylinders in these places that are not among them go where those come from, and all others stay.
    pub fn shuffle_hottest(&mut self, hottest: u32) -> Vec<CylinderMove> {
        let all = self.counts.len();
        let mut ranked: Vec<u32> = (0..all as u32).collect();
        ranked.sort_unstable_by_key(|home| (u64::MAX - self.counts[*home as usize], *home));
        ranked.truncate(hottest as usize);
        let first = all / 2 - ranked.len() / 2;
        let middle = first as u32..(first + ranked.len()) as u32;
        let mut is_hot = vec![false; all];
        ranked.iter().for_each(|home| is_hot[*home as usize] = true);
        let mut places = self.places.clone();
        let came_from = ranked.iter().map(|home| self.places[*home as usize]);
        let mut vacated: Vec<u32> = came_from.filter(|place| !middle.contains(place)).collect();
        vacated.sort_unstable();
        let displaced = (0..all).filter(|home| !is_hot[*home] && middle.contains(&self.places[*home]));
        displaced.zip(vacated).for_each(|(home, place)| places[home] = place);
        for (home, place) in ranked.iter().zip(organ_pipe(ranked.len())) {
            places[*home as usize] = (first + place) as u32;
        }
        let moves = circles(&self.places, &places);
        self.places = places;
        self.clear();
        moves
    }
}

/// The moves from one permutation to another, cycle by cycle.
fn circles(before: &[u32], after: &[u32]) -> Vec<CylinderMove> {
    let mut held_by = vec![0; before.len()];
    before.iter().enumerate().for_each(|(home, place)| held_by[*place as usize] = home as u32);
    let mut is_moved = vec![false; before.len()];
    let mut moves = Vec::new();
    for first in 0..before.len() {
        let mut home = first;
        while !is_moved[home] && before[home] != after[home] {
            is_moved[home] = true;
            moves.push(CylinderMove { home: home as u32, from: before[home], to: after[home] });
            // The data that are in the way go next.
            home = held_by[after[home] as usize] as usize;
        }
    }
    moves
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn observed(shuffle: &mut CylinderShuffle, references: &[u32]) {
        references.iter().for_each(|home| shuffle.observe(*home));
    }

    #[test]
    fn most_referenced_cylinder_goes_to_the_middle() {
        let mut shuffle = CylinderShuffle::new(5);
        observed(&mut shuffle, &[0, 0, 0, 4, 4, 3]);
        assert_eq!(shuffle.counts(), [3, 0, 0, 1, 2]);
        shuffle.shuffle();
        let places: Vec<u32> = (0..5).map(|home| shuffle.place_of(home)).collect();
        assert_eq!(places, [2, 0, 4, 3, 1], "0 in the middle, then 4 and 3 at its sides, then 1 and 2");
        assert_eq!(shuffle.counts(), [0; 5], "a new period has begun");
    }

    #[test]
    fn two_hottest_cylinders_exchange_their_places_with_the_middle() {
        let mut shuffle = CylinderShuffle::new(6);
        observed(&mut shuffle, &[5, 5, 5, 1, 1, 0]);
        shuffle.shuffle_hottest(2);
        let places: Vec<u32> = (0..6).map(|home| shuffle.place_of(home)).collect();
        assert_eq!(places, [0, 2, 1, 5, 4, 3], "5 and 1 in the middle, 2 and 3 in their places");
    }

    proptest! {
        #[test]
        fn moves_keep_the_data_of_every_cylinder(
            hottest in 0u32..16,
            periods in prop::collection::vec(prop::collection::vec(0u32..12, 0..40), 1..5),
        ) {
            let mut shuffle = CylinderShuffle::new(12);
            // What each cylinder holds: at first its own data.
            let mut disk: Vec<u32> = (0..12).collect();
            for references in periods {
                observed(&mut shuffle, &references);
                let moves = shuffle.shuffle_hottest(hottest);
                let before = disk.clone();
                for CylinderMove { home, from, to } in &moves {
                    prop_assert_eq!(before[*from as usize], *home);
                    disk[*to as usize] = *home;
                }
                for (number, moved) in moves.iter().enumerate() {
                    let is_next = moves.get(number + 1).is_some_and(|next| next.from == moved.to);
                    let closes = moves[..number].iter().any(|done| done.from == moved.to);
                    prop_assert!(is_next || closes, "{:?}", moves);
                }
                for home in 0..12 {
                    prop_assert_eq!(disk[shuffle.place_of(home) as usize], home);
                }
            }
        }

        #[test]
        fn shuffle_of_few_cylinders_leaves_the_others_but_for_those_that_make_room(
            references in prop::collection::vec(0u32..12, 0..60),
            hottest in 0u32..12,
        ) {
            let mut shuffle = CylinderShuffle::new(12);
            observed(&mut shuffle, &references);
            let moves = shuffle.shuffle_hottest(hottest);
            prop_assert!(moves.len() as u32 <= 2 * hottest, "{:?}", moves);
        }

        #[test]
        fn references_to_one_cylinder_stay_together(references in prop::collection::vec(0u32..9, 2..60)) {
            let mut shuffle = CylinderShuffle::new(9);
            observed(&mut shuffle, &references);
            shuffle.shuffle();
            for pair in references.windows(2) {
                prop_assert_eq!(pair[0] == pair[1], shuffle.place_of(pair[0]) == shuffle.place_of(pair[1]));
            }
        }

        #[test]
        fn equal_counts_in_the_next_period_move_nothing(references in prop::collection::vec(0u32..9, 0..60)) {
            let mut shuffle = CylinderShuffle::new(9);
            observed(&mut shuffle, &references);
            shuffle.shuffle();
            observed(&mut shuffle, &references);
            prop_assert_eq!(shuffle.shuffle(), Vec::new());
        }
    }
}
