//! A second, simple implementation of the orders: each order examines every request.

use crate::drive::{CYLINDERS, Cost};
use headstack_model::{Instant, Op};
use headstack_policy::order::AccessCost;
use headstack_policy::{Slot, SlotId};
use std::collections::BTreeSet;

/// An order with its state.
pub(crate) struct Plain {
    name: &'static str,
    falls: bool,
    /// Numbers of the requests in the batch or in the frozen group.
    batch: BTreeSet<u64>,
    group: u32,
}

/// Index of the slot with the least key; of equal ones, the first.
fn least<K: Ord>(slots: &[Slot], key: impl Fn(&Slot) -> Option<K>) -> Option<usize> {
    let mut best: Option<(K, usize)> = None;
    for (index, slot) in slots.iter().enumerate() {
        let Some(key) = key(slot) else { continue };
        if best.as_ref().is_none_or(|(least, _)| key < *least) {
            best = Some((key, index));
        }
    }
    best.map(|(_, index)| index)
}

impl Plain {
    pub(crate) fn new(name: &'static str) -> Plain {
        Plain { name, falls: false, batch: BTreeSet::new(), group: 0 }
    }

    /// The index of the slot that the order must choose.
    pub(crate) fn choose(&mut self, now: Instant, slots: &[Slot], cost: &Cost) -> Option<usize> {
        let lbn = |slot: &Slot| slot.request.lbn.0;
        let cylinder = |slot: &Slot| u64::from(slot.cylinder);
        let arm = u64::from(cost.arm);
        let time = |slot: &Slot| i128::from(cost.positioning(slot).0);
        let age = |slot: &Slot| i128::from(now.0 - slot.arrived.0);
        let cached = |slot: &Slot| if cost.is_cached(slot) { 0 } else { time(slot) };
        let any = |_: &Slot| true;
        match self.name {
            "fcfs" => (!slots.is_empty()).then_some(0),
            "sstf" => least(slots, |slot| Some(cylinder(slot).abs_diff(arm))),
            "sstf-lbn" => least(slots, |slot| Some(lbn(slot).abs_diff(cost.last))),
            "scan" | "look" => self.look(slots, arm, cylinder, any),
            "scan-lbn" | "look-lbn" => self.look(slots, cost.last, lbn, any),
            "c-scan" | "c-look-cylinder" => c_look(slots, arm, cylinder, any),
            "c-scan-lbn" | "c-look" => c_look(slots, cost.last, lbn, any),
            "c-look-batched" => {
                let from = if self.batch_continues(slots, usize::MAX) { cost.last } else { 0 };
                c_look(slots, from, lbn, |slot| self.batch.contains(&slot.number))
            }
            "c-look-zoned" => {
                let zone = |slot: &Slot| slot.cylinder * 8 / CYLINDERS;
                let here = c_look(slots, arm, cylinder, |slot| zone(slot) == self.group);
                let index = here.or_else(|| {
                    c_look(slots, u64::from((self.group + 1) * CYLINDERS).div_ceil(8), cylinder, any)
                })?;
                self.group = zone(&slots[index]);
                Some(index)
            }
            "vr" => self.reluctant(slots, arm),
            "n-step" => {
                self.batch_continues(slots, 8);
                let batch = self.batch.clone();
                self.look(slots, arm, cylinder, |slot| batch.contains(&slot.number))
            }
            "fscan" => {
                self.batch_continues(slots, usize::MAX);
                let batch = self.batch.clone();
                self.look(slots, arm, cylinder, |slot| batch.contains(&slot.number))
            }
            "sptf" => least(slots, |slot| Some(time(slot))),
            "gstf" | "gstf-frozen" => self.grouped(slots, cost),
            "wstf" => least(slots, |slot| Some(time(slot) * (3_000_000_000 - age(slot)).max(0))),
            "asptf" => least(slots, |slot| Some(time(slot) * 1000 - age(slot) * 6)),
            "bounded-sptf" => {
                let (others, youngest) = (slots.len() as u64 - 1, slots.last()?.number);
                // K is 1.2 and P is 1.
                let left = |slot: &Slot| (11 * others).saturating_sub(5 * (youngest - slot.number));
                least(slots, |slot| Some(time(slot) * i128::from(left(slot))))
            }
            "spctf" => least(slots, |slot| Some(cached(slot))),
            "aspctf" => least(slots, |slot| Some(cached(slot) * 1000 - age(slot) * 6)),
            "edf" => least(slots, |slot| Some(deadline(slot))),
            "scan-edf" => {
                let interval = |slot: &Slot| deadline(slot) / 100_000_000;
                let first = slots.iter().map(interval).min()?;
                self.look(slots, arm, cylinder, |slot| interval(slot) == first)
            }
            "p-scan" => {
                let urgent = slots.iter().any(|slot| slot.urgent);
                self.look(slots, arm, cylinder, |slot| slot.urgent || !urgent)
            }
            "fcfs-reads" => reads_first(slots, now, |may| least(slots, |slot| may(slot).then_some(0))),
            "c-look-reads" => reads_first(slots, now, |may| c_look(slots, cost.last, lbn, may)),
            "sptf-reads" => reads_first(slots, now, |may| least(slots, |slot| may(slot).then(|| time(slot)))),
            other => panic!("a new order, {other}, has not been said plainly yet"),
        }
    }

    fn look(
        &mut self,
        slots: &[Slot],
        here: u64,
        place: impl Fn(&Slot) -> u64,
        may: impl Fn(&Slot) -> bool,
    ) -> Option<usize> {
        let go = |falls: bool| {
            let ahead = |slot: &Slot| if falls { place(slot) <= here } else { place(slot) >= here };
            least(slots, |slot| (may(slot) && ahead(slot)).then(|| place(slot).abs_diff(here)))
        };
        if let Some(index) = go(self.falls) {
            return Some(index);
        }
        let turned = go(!self.falls)?;
        self.falls = !self.falls;
        Some(turned)
    }

    fn reluctant(&mut self, slots: &[Slot], arm: u64) -> Option<usize> {
        let back = |slot: &Slot| {
            let place = u64::from(slot.cylinder);
            if self.falls { place > arm } else { place < arm }
        };
        // R is 0.2.
        let penalty = |slot: &Slot| if back(slot) { u64::from(CYLINDERS) } else { 0 };
        let index = least(slots, |slot| Some(u64::from(slot.cylinder).abs_diff(arm) * 5 + penalty(slot)))?;
        self.falls ^= back(&slots[index]);
        Some(index)
    }

    /// Whether the batch still has requests. If not, closes the next batch.
    fn batch_continues(&mut self, slots: &[Slot], most: usize) -> bool {
        let continues = slots.iter().any(|slot| self.batch.contains(&slot.number));
        if !continues {
            self.batch = slots.iter().take(most).map(|slot| slot.number).collect();
        }
        continues
    }

    fn grouped(&mut self, slots: &[Slot], cost: &Cost) -> Option<usize> {
        let group = |slot: &Slot| slot.cylinder / 28;
        let freezes = self.name == "gstf-frozen";
        for _ in 0..2 {
            let may =
                |slot: &Slot| group(slot) == self.group && (!freezes || self.batch.contains(&slot.number));
            if let Some(index) = least(slots, |slot| may(slot).then(|| cost.positioning(slot))) {
                return Some(index);
            }
            let above = slots.iter().map(group).filter(|group| *group > self.group).min();
            self.group = above.or_else(|| slots.iter().map(group).min())?;
            self.batch = slots.iter().map(|slot| slot.number).collect();
        }
        unreachable!("the group was chosen because something waits there")
    }
}

fn c_look(
    slots: &[Slot],
    here: u64,
    place: impl Fn(&Slot) -> u64,
    may: impl Fn(&Slot) -> bool,
) -> Option<usize> {
    least(slots, |slot| may(slot).then(|| (place(slot) < here, place(slot))))
}

fn deadline(slot: &Slot) -> u64 {
    let time = if slot.request.op == Op::Read { 500_000_000 } else { 5_000_000_000 };
    slot.deadline.0.min(slot.arrived.0 + time)
}

fn reads_first(
    slots: &[Slot],
    now: Instant,
    among: impl Fn(&dyn Fn(&Slot) -> bool) -> Option<usize>,
) -> Option<usize> {
    let read = |slot: &Slot| slot.request.op == Op::Read;
    let late = |slot: &Slot| !read(slot) && now.0 >= slot.arrived.0 + 5_000_000_000;
    if slots.iter().any(late) {
        return among(&late);
    }
    if slots.iter().any(read) { among(&read) } else { among(&|_| true) }
}

/// The ids that the test gave to the requests of these slots.
pub(crate) fn ids(slots: &[Slot]) -> Vec<SlotId> {
    slots.iter().map(|slot| slot.id).collect()
}
