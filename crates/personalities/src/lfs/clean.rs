//! The cleaner: the choice of segments, and the copying of their live blocks.

use super::{Choice, Lfs, Place, Segment};
use headstack_model::Request;

impl Lfs {
    /// Cleans until enough segments are clean, or no segment is worth it.
    pub(super) fn clean_up(&mut self) {
        while self.clean.len() < self.cleaning.high as usize {
            let victims = self.victims();
            if victims.is_empty() {
                return;
            }
            self.clean(&victims);
        }
    }

    /// The segments to clean together: the best ones, as many as needed, whose live blocks fit into the clean segments.
    fn victims(&self) -> Vec<u32> {
        let wanted = self.cleaning.high as usize + 1 - self.clean.len();
        let is_open = |number: u32| self.open.is_some_and(|open| open.segment == number);
        let mut room = self.clean_blocks + u64::from(self.room());
        let numbered = (0u32..).zip(self.table.segments());
        // Where segments differ in length, one that finds no room must not keep others from being cleaned.
        let gains = |segment: &Segment| segment.live > 0 && segment.live < segment.blocks;
        let mut rated: Vec<(f64, u32, u32)> = numbered
            .filter(|(number, segment)| {
                gains(segment) && u64::from(segment.live) <= room && !is_open(*number)
            })
            .map(|(number, segment)| (self.rating(segment), number, segment.live))
            .collect();
        let better = |a: &(f64, u32, u32), b: &(f64, u32, u32)| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1));
        if rated.len() > wanted {
            rated.select_nth_unstable_by(wanted - 1, better);
            rated.truncate(wanted);
        }
        rated.sort_unstable_by(better);
        let fits = |(_, number, live): (f64, u32, u32)| {
            room = room.checked_sub(live.into())?;
            Some(number)
        };
        rated.into_iter().map_while(fits).collect()
    }

    fn rating(&self, segment: &Segment) -> f64 {
        let u = f64::from(segment.live) / f64::from(segment.blocks);
        match self.cleaning.choice {
            Choice::CostBenefit => (1.0 - u) * (self.now - segment.youngest) as f64 / (1.0 + u),
            Choice::Greedy => 1.0 - u,
        }
    }

    /// Reads segments, and writes their live blocks to the log, the oldest first.
    fn clean(&mut self, victims: &[u32]) {
        let mut live: Vec<(u64, u32)> = Vec::new();
        for victim in victims {
            let Segment { start, sectors, blocks, .. } = *self.table.segment(*victim);
            self.transfers.push(Request::read(start, sectors));
            self.cost.read += u64::from(blocks);
            let written = (0u32..).zip(&self.written[*victim as usize]);
            let here = written.filter(|(slot, block)| {
                self.places[**block as usize] == Some(Place { segment: *victim, slot: *slot })
            });
            live.extend(here.map(|(_, block)| (self.modified[*block as usize], *block)));
        }
        live.sort_unstable();
        self.cost.copied += live.len() as u64;
        for (_, block) in live {
            if self.room() == 0 {
                self.seal();
                assert!(self.open_next(), "victims are chosen so that what lives in them finds room");
            }
            self.remove(block);
            self.append(block);
        }
    }
}
