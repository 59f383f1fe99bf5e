//! Where the next request of a job goes within one of its files.
//!
//! The rules are fio's: reads and writes have separate positions, a place is relative to where the job begins in
//! the file, and a file is done once the next place or the end of the next request lies beyond it.

use rand::{Rng, RngExt};
use rand_pcg::Pcg64Mcg;

use crate::Distribution;
use crate::dist::{Quantity, Sampler};

use super::extent::{Extent, Run};
use super::map::{Bitmap, Permutation};
use super::own::Own;
use super::settings::{Direction, READ, Settings, Spread, WRITE};
use super::sizes::Sizes;
use super::spread::Drawer;
use super::strided::Stride;
use super::zoned::{ZonedFile, ZonedVolumes};

/// Blocks of one size up to which used blocks are marked as fio marks them: instead of a used block, the next unused one is taken,
/// so that late in a pass some requests follow each other. A pass over more takes a disk a day, and within less than a pass the
/// difference cannot be seen.
const MARKED: u64 = 1 << 22;

#[derive(Clone, Debug)]
pub(super) struct Pattern {
    pub(super) direction: Direction,
    pub(super) sizes: [Sizes; 2],
    pub(super) align: [u64; 2],
    spread: Spread,
    /// Whether no block is accessed twice until all were accessed.
    pub(super) once: bool,
    percent_random: [u64; 2],
    /// With random places: a place is drawn for every `modifier`th request. Otherwise: bytes to skip.
    pub(super) modifier: u64,
    backwards: bool,
    same_place: bool,
    by_randomness: bool,
    /// Shares of the random requests that continue the last one, and that lie near it.
    nearness: Option<(f64, f64, Sampler<f64>)>,
    /// Whether a file begins again at its end.
    endless: bool,
    /// Whether sequential positions begin again at the end of the file.
    pub(super) wraps: bool,
}

/// The keys of Headstack for requests near the last one.
fn nearness(own: &Own) -> Option<(f64, f64, Sampler<f64>)> {
    let (sequential, local) = (own.sequential, own.local);
    (sequential + local > 0.0).then(|| (sequential, local, ready(&own.local_distance)))
}

/// One random generator for each purpose, so that the draws of one purpose do not affect another.
#[derive(Clone, Debug)]
pub(super) struct PlaceDice {
    pub(super) place: Pcg64Mcg,
    pub(super) size: Pcg64Mcg,
    pub(super) order: Pcg64Mcg,
    pub(super) file: Pcg64Mcg,
}

impl Pattern {
    pub(super) fn new(settings: &Settings) -> Pattern {
        let (rw, blocks, random) = (settings.access.rw, &settings.blocks, &settings.random);
        let sizes = [Sizes::new(blocks, READ), Sizes::new(blocks, WRITE)];
        let least = [sizes[READ].least(), sizes[WRITE].least()];
        let direction = rw.direction;
        let align = [READ, WRITE]
            .map(|at| if direction.random { blocks.align[at].unwrap_or(least[at]) } else { least[at] });
        let once = !random.without_map && align == least && random.spread == Spread::Uniform;
        Pattern {
            direction,
            sizes,
            align,
            spread: random.spread.clone(),
            once,
            percent_random: [random.percent[READ], random.percent[WRITE]],
            modifier: rw.modifier,
            backwards: rw.backwards,
            same_place: settings.access.same_place,
            by_randomness: blocks.by_randomness,
            nearness: nearness(&settings.own),
            endless: settings.life.is_endless(),
            wraps: false,
        }
    }

    /// Whether a direction is used at all.
    pub(super) fn uses(&self, at: usize) -> bool {
        if at == READ { self.direction.reads } else { self.direction.writes }
    }

    pub(super) fn least(&self) -> u64 {
        [READ, WRITE].iter().filter(|at| self.uses(**at)).map(|at| self.sizes[*at].least()).min().unwrap_or(1)
    }

    pub(super) fn most(&self) -> u64 {
        [READ, WRITE].iter().filter(|at| self.uses(**at)).map(|at| self.sizes[*at].most()).max().unwrap_or(1)
    }

    /// Whether accessed blocks are marked one by one.
    pub(super) fn marks(&self) -> bool {
        self.direction.random && self.once && !self.is_fixed()
    }

    fn is_fixed(&self) -> bool {
        (0..2).all(|at| !self.uses(at) || matches!(self.sizes[at], Sizes::Fixed(_)))
    }
}

#[derive(Clone, Debug)]
enum Order {
    Drawn(Drawer),
    /// Each place once, all of one size, in constant memory.
    Once {
        order: Permutation,
        next: u64,
    },
    /// Each place once, of any size.
    Mapped(Bitmap),
}

/// A file as a job sees it, with the job's positions in it.
#[derive(Clone, Debug)]
pub(super) struct File {
    /// The volume it lies on, and where it begins there in bytes.
    pub(super) volume: u32,
    pub(super) base: u64,
    /// Where the job begins in it; with strides, where the present zone begins.
    start: u64,
    /// Where the job begins in it.
    origin: u64,
    /// How far the job goes from there.
    reach: u64,
    end: u64,
    position: [u64; 2],
    last: [Option<u64>; 2],
    latest: Option<Run>,
    pub(super) sector: u64,
    orders: Vec<Order>,
    /// Blocks to draw from, per direction.
    blocks: [u64; 2],
    pub(super) done: bool,
    zones: Option<ZonedFile>,
}

impl File {
    pub(super) fn new(
        extent: Extent,
        zones: Option<ZonedFile>,
        pattern: &Pattern,
        stride: Option<&Stride>,
        dice: &mut PlaceDice,
    ) -> File {
        let Extent { volume, base, start, reach, end, sector } = extent;
        let blocks = [READ, WRITE].map(|at| {
            let most = stride.map_or(reach.min(end), |stride| stride.range);
            // A request at the last place must not reach beyond the end.
            most.saturating_sub(pattern.sizes[at].least().saturating_sub(pattern.align[at]))
                / pattern.align[at]
        });
        let mut file = File {
            volume,
            base,
            start,
            origin: start,
            reach,
            end,
            position: [start; 2],
            last: [None; 2],
            latest: None,
            sector,
            orders: Vec::new(),
            blocks,
            done: false,
            zones,
        };
        if pattern.direction.random {
            file.orders = (0..if file.shares_order(pattern) { 1 } else { 2 })
                .map(|at| file.order(at, pattern, dice))
                .collect();
        }
        file
    }

    /// Whether reads and writes draw from the same places.
    fn shares_order(&self, pattern: &Pattern) -> bool {
        let one_way = pattern.direction.reads != pattern.direction.writes;
        one_way || pattern.once && pattern.align[READ] == pattern.align[WRITE]
    }

    fn order(&self, at: usize, pattern: &Pattern, dice: &mut PlaceDice) -> Order {
        let at = if pattern.uses(at) { at } else { 1 - at };
        let blocks = self.blocks[at];
        if !pattern.once {
            let block = pattern.sizes[READ].least().min(pattern.sizes[WRITE].least());
            let places = self.reach.min(self.end).div_ceil(block).max(1);
            let scale = (blocks, pattern.align[at]);
            return Order::Drawn(Drawer::new(&pattern.spread, at, places, scale, &mut dice.place));
        }
        if pattern.is_fixed() && blocks > MARKED {
            Order::Once { order: Permutation::new(blocks.max(1), dice.place.next_u64()), next: 0 }
        } else {
            Order::Mapped(Bitmap::new(blocks.max(1)))
        }
    }

    /// Moves to the next zone of a stride if it is time, before a request in this direction. Few jobs have strides.
    #[cold]
    pub(super) fn follow_stride(&mut self, at: usize, stride: &mut Stride, dice: &mut PlaceDice) {
        if let Some(distance) = stride.next_zone() {
            self.start = self.start.saturating_add(distance);
            if self.start >= self.end {
                self.start = self.origin;
            }
            self.position[at] = self.start;
        }
        if self.position[at] >= self.start.saturating_add(stride.range) {
            self.position[at] = self.start;
        }
        if stride.begins_pass() {
            self.rewind(dice);
        }
    }

    pub(super) fn return_to_first_zone(&mut self) {
        self.start = self.origin;
    }

    pub(super) fn rewind(&mut self, dice: &mut PlaceDice) {
        (self.position, self.last, self.latest) = ([self.start; 2], [None; 2], None);
        self.done = false;
        (0..self.orders.len()).for_each(|at| self.forget(at, dice));
    }

    fn forget(&mut self, at: usize, dice: &mut PlaceDice) {
        match &mut self.orders[at] {
            Order::Drawn(_) => {}
            Order::Once { order, next } => {
                (*order, *next) = (Permutation::new(order.count(), dice.place.next_u64()), 0);
            }
            Order::Mapped(map) => map.clear(),
        }
    }

    /// The next request in this direction; `None` when the file is done. `turn`: whether this request draws a place, where only every few
    /// requests draw one.
    #[inline(always)]
    pub(super) fn next(
        &mut self,
        at: usize,
        pattern: &Pattern,
        turn: bool,
        dice: &mut PlaceDice,
        zoned: &mut ZonedVolumes,
    ) -> Option<Run> {
        let is_random = pattern.direction.random && turn && self.is_random(at, pattern, dice);
        let near = if is_random { self.near(at, pattern, dice) } else { None };
        let is_random = is_random && near.is_none();
        let place = if let Some(place) = near {
            place
        } else if is_random {
            self.random(at, pattern, dice)?
        } else if pattern.direction.random && !turn && pattern.same_place {
            self.last[at].map_or(0, |last| last - self.start)
        } else {
            match self.sequential(at, pattern) {
                Some(place) => place,
                None if pattern.direction.random => self.random(at, pattern, dice)?,
                None => return None,
            }
        };
        let offset = self.start.checked_add(place).filter(|offset| *offset < self.end)?;
        if place >= self.reach {
            return None;
        }
        let by = if pattern.by_randomness { usize::from(is_random) } else { at };
        let room = self.start.saturating_add(self.reach).checked_sub(offset)?;
        let mut bytes = pattern.sizes[by].draw(room, &mut dice.size)?;
        if offset + bytes > self.end {
            return None;
        }
        if is_random {
            bytes = self.mark(at, pattern, place, bytes);
        }
        let wanted = Run { offset, bytes, resets_zone: false };
        let run = match &self.zones {
            None => wanted,
            Some(zones) => zoned.placed_run(zones, at, wanted, is_random.then_some(pattern.align[at]))?,
        };
        self.last[at] = Some(run.offset);
        self.position[at] = run.offset + run.bytes;
        self.latest = Some(run);
        self.latest
    }

    /// As [`File::next`], for a write.
    #[cold]
    pub(super) fn next_write(
        &mut self,
        pattern: &Pattern,
        turn: bool,
        dice: &mut PlaceDice,
        zoned: &mut ZonedVolumes,
    ) -> Option<Run> {
        self.next(WRITE, pattern, turn, dice, zoned)
    }

    /// Whether it is read and written by the write pointers of zones.
    pub(super) fn has_zones(&self) -> bool {
        self.zones.is_some()
    }

    /// A place after the last request or near it, where the job has such requests.
    #[inline]
    fn near(&self, at: usize, pattern: &Pattern, dice: &mut PlaceDice) -> Option<u64> {
        match &pattern.nearness {
            None => None,
            Some(_) => self.drawn_near(at, pattern, dice),
        }
    }

    /// A place after the last request or near it, if the draw says so and there is room.
    #[cold]
    fn drawn_near(&self, at: usize, pattern: &Pattern, dice: &mut PlaceDice) -> Option<u64> {
        let ((sequential, local, distance), last) = (pattern.nearness.as_ref()?, self.latest?);
        let kind: f64 = dice.order.random();
        let room = self.reach.min(self.end - self.start).checked_sub(pattern.sizes[at].least())?;
        let place = if kind < *sequential {
            last.offset - self.start + last.bytes
        } else if kind < sequential + local {
            let away = distance.draw(&mut dice.place) as i64;
            let near = i128::from(last.offset - self.start) + i128::from(away) * i128::from(self.sector);
            let aligned = near.div_euclid(i128::from(pattern.align[at])) * i128::from(pattern.align[at]);
            aligned.clamp(0, i128::from(room)) as u64
        } else {
            return None;
        };
        (place <= room).then_some(place)
    }

    #[inline]
    fn is_random(&self, at: usize, pattern: &Pattern, dice: &mut PlaceDice) -> bool {
        let percent = pattern.percent_random[at];
        percent == 100 || drawn_within(percent, dice)
    }

    /// A random place, relative to where the job begins.
    fn random(&mut self, at: usize, pattern: &Pattern, dice: &mut PlaceDice) -> Option<u64> {
        if self.blocks[at] == 0 {
            return None;
        }
        let block = match self.draw(at, dice) {
            Some(block) => block,
            None => self.draw_again(at, pattern, dice)?,
        };
        Some(block * pattern.align[at])
    }

    /// A place after all places have been accessed: for a job without an end, as at its start.
    #[cold]
    fn draw_again(&mut self, at: usize, pattern: &Pattern, dice: &mut PlaceDice) -> Option<u64> {
        if !pattern.endless {
            return None;
        }
        self.forget(self.order_of(at), dice);
        self.draw(at, dice)
    }

    fn order_of(&self, at: usize) -> usize {
        at.min(self.orders.len() - 1)
    }

    #[inline]
    fn draw(&mut self, at: usize, dice: &mut PlaceDice) -> Option<u64> {
        let blocks = self.blocks[at];
        let order = self.order_of(at);
        match &mut self.orders[order] {
            Order::Drawn(drawer) => Some(drawer.draw(blocks, &mut dice.place)),
            Order::Once { order, next } => {
                let index = *next;
                (index < blocks).then(|| {
                    *next += 1;
                    order.permuted(index)
                })
            }
            Order::Mapped(map) => map.next_free(dice.place.random_range(0..blocks)),
        }
    }

    /// Marks a random request as used, where blocks are marked; returns its length up to the first block that was used already.
    #[inline]
    fn mark(&mut self, at: usize, pattern: &Pattern, place: u64, bytes: u64) -> u64 {
        let order = self.order_of(at);
        match &mut self.orders[order] {
            Order::Mapped(map) => {
                let block = pattern.align[at];
                bytes.min(map.mark(place / block, bytes.div_ceil(block)) * block)
            }
            _ => bytes,
        }
    }

    /// The place after the last request, relative to the start of the job.
    fn sequential(&mut self, at: usize, pattern: &Pattern) -> Option<u64> {
        if pattern.wraps && self.position[at] >= self.start.saturating_add(self.reach) {
            self.position[at] = self.start;
        }
        if self.position[at] >= self.end {
            return None;
        }
        let skip = if pattern.direction.random { 0 } else { pattern.modifier };
        let turnaround = self.reach.min(self.end);
        if pattern.backwards && skip > 0 && self.start > 0 && self.position[at] == self.start {
            self.position[at] = turnaround;
        }
        let place = self.position[at].checked_sub(self.start)?;
        if place == 0 || skip == 0 {
            return Some(place);
        }
        if pattern.backwards {
            return place.checked_sub(skip).or_else(|| turnaround.checked_sub(skip));
        }
        let ahead = place + skip;
        Some(if ahead >= self.end { self.start } else { ahead })
    }
}

/// Whether a draw from 1 to 100 is within this percent. Most jobs draw all places or none.
#[cold]
fn drawn_within(percent: u64, dice: &mut PlaceDice) -> bool {
    dice.order.random_range(1..=100) <= percent
}

/// A distribution that was checked when it was read, to draw from.
pub(super) fn ready<V: Quantity>(distribution: &Distribution<V>) -> Sampler<V> {
    distribution.sampler().expect("it was checked when it was read")
}
