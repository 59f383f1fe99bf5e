//! Adaptive block rearrangement: blocks that are used often are copied to where the arm usually is.
//!
//! The rearranger stands before a disk or an array. It counts the references to blocks ([`ReferenceAnalyzer`]). At the end of each
//! period it copies the hottest blocks into a reserved region ([`ReservedRegion`]), each to a slot that a [`HotPlacement`] chooses. From
//! then on requests for these blocks go to the copies. Blocks are copied, not moved: a block that has cooled is only written home if
//! its copy was written. The region is never visible: the disk appears smaller by it.
//!
//! It is a deterministic state machine without a clock. Its owner submits requests and reports ended commands and recorded changes, each
//! with the time, takes [`RearrangeAction`]s from it, and asks it when to call again. The owner holds the bytes, and the table that
//! survives a crash, if one does.
//!
//! Reads return what was last written, because a block has one place in force at any time: its home until its copy is recorded, the
//! copy until its removal is recorded. A request that writes to a block while that changes is held until the change is recorded.
//!
//! *Source:* S. Akyürek, K. Salem, "Adaptive block rearrangement" (ACM TOCS 13(2), 1995): analyzer, arranger, hot block table, region in
//! the middle of the disk. The pace of copies, the treatment of requests during copies, and the states of the table are ours.

mod analysis;
mod analyzer;
mod anneal;
mod arranger;
mod config;
mod copies;
mod error;
mod forecast;
mod index;
mod list_error;
mod messages;
mod pace;
mod placement;
mod region;
mod replacement;
mod requests;
mod shuffle;
mod space_saving;
mod table;
mod view;

pub use analysis::{CaughtShares, PeriodAnalysis, ReferenceAnalysis};
pub use analyzer::{CarriedShare, ExactCounts, FirstCome, HotBlock, ReferenceAnalyzer};
pub use anneal::TransitionCounts;
pub use config::{CopyTime, HotSelection, ReadSource, RearrangeSpec, RegionPlace};
pub(crate) use error::outside;
pub use list_error::{ListError, caught_share};
pub use messages::{BlockAccess, BlockCommand, BlockRequest, CommandBuffer, RearrangeAction, TableChange};
pub use placement::{HotPlacement, organ_pipe};
pub use region::{RegionSlot, ReservedRegion, ReservedRun};
pub use replacement::CounterReplacement;
pub use requests::DirectEnded;
pub use shuffle::{CylinderMove, CylinderShuffle};
pub use space_saving::SpaceSaving;
pub use view::{PeriodRecord, RearrangeCounters, RearrangeView};

use arranger::CopyPlan;
use copies::ActiveCopy;
use forecast::{ReferenceForecast, worthwhile_copies};
use headstack_model::spec::Fault;
use headstack_model::{BlockError, Instant, Lbn, Nanos};
use pace::CopyPace;
use requests::{DividedRequest, RequestPiece};
use slab::Slab;
use std::collections::VecDeque;
use table::{CopyState, HotBlockTable};
use view::EndedPeriods;

/// The reason for a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum CommandPurpose {
    /// It is a whole request, with this ticket.
    Whole(u64),
    /// It is a part of a request, with this key.
    Part(u32),
    CopyRead(u32),
    CopyWrite(u32),
}

/// A command that has not ended.
#[derive(Clone, Copy, Debug)]
struct InFlightCommand {
    purpose: CommandPurpose,
    /// Whether it is a request's write.
    is_write: bool,
    /// Its first and last block.
    blocks: (u64, u64),
    /// The first and last slot, if a request uses the region.
    slots: Option<(u32, u32)>,
}

/// What has begun and not ended.
#[derive(Debug, Default)]
struct CommandsInFlight {
    commands: Slab<InFlightCommand>,
    /// The first and last blocks of the writes to homes that the owner answers itself.
    direct_home_writes: Slab<(u64, u64)>,
}

impl CommandsInFlight {
    fn is_empty(&self) -> bool {
        self.commands.is_empty() && self.direct_home_writes.is_empty()
    }

    /// Whether a request's write to the home of a block is in flight.
    fn writes_home_of(&self, block: u64) -> bool {
        let covers = |(first, last): (u64, u64)| (first..=last).contains(&block);
        let writes =
            |command: &InFlightCommand| command.is_write && command.slots.is_none() && covers(command.blocks);
        self.commands.iter().any(|(_, command)| writes(command))
            || self.direct_home_writes.iter().any(|(_, blocks)| covers(*blocks))
    }
}

/// The rearranger of one disk.
#[derive(Debug)]
pub struct Rearranger {
    spec: RearrangeSpec,
    block_sectors: u64,
    /// The logarithm to base 2 of the sectors of a block, if that is whole.
    block_shift: Option<u32>,
    region: ReservedRegion,
    slots: Vec<RegionSlot>,
    now: Instant,
    analyzer: Box<dyn ReferenceAnalyzer>,
    forecast: Option<ReferenceForecast>,
    table: HotBlockTable,
    plan: CopyPlan,
    copies: Slab<ActiveCopy>,
    pace: CopyPace,
    in_flight: CommandsInFlight,
    split: Slab<DividedRequest>,
    /// Requests that wait until a change of the table is recorded.
    held: VecDeque<BlockRequest>,
    /// Pieces of the request that is being routed; kept for its memory.
    pieces: Vec<RequestPiece>,
    actions: VecDeque<RearrangeAction>,
    /// When the period ends; [`Instant::MAX`] for never.
    period_end: Instant,
    periods: EndedPeriods,
    counters: RearrangeCounters,
}

impl Rearranger {
    /// A rearranger whose region is empty. `slots` are those of the region ([`ReservedRegion::slots`]) for blocks of `block_sectors`
    /// sectors; they rise by place, cylinder and track.
    ///
    /// *Errors:* a key is out of its range, or the region has no slot.
    pub fn new(
        spec: RearrangeSpec,
        block_sectors: u64,
        region: ReservedRegion,
        slots: Vec<RegionSlot>,
    ) -> Result<Rearranger, Fault> {
        spec.check()?;
        if slots.is_empty() {
            let met = format!("a region of {} sectors", region.reserved_sectors());
            let allowed = format!("regions with room for a block of {block_sectors} sectors");
            return Err(outside("block_bytes", met, allowed));
        }
        Ok(Rearranger {
            block_sectors,
            block_shift: block_sectors.is_power_of_two().then(|| block_sectors.trailing_zeros()),
            analyzer: spec.replacement.analyzer(spec.counters() as usize),
            forecast: (spec.selection == HotSelection::Forecast).then(|| ReferenceForecast::new(slots.len())),
            table: HotBlockTable::new(slots.len()),
            plan: CopyPlan::default(),
            copies: Slab::new(),
            pace: CopyPace::new(&spec),
            in_flight: CommandsInFlight::default(),
            split: Slab::new(),
            held: VecDeque::new(),
            pieces: Vec::new(),
            actions: VecDeque::new(),
            period_end: Instant::ZERO + spec.period(),
            periods: EndedPeriods::default(),
            counters: RearrangeCounters::default(),
            now: Instant::ZERO,
            region,
            slots,
            spec,
        })
    }

    /// Adds a copy that the region held before a restart. Call it before the first request.
    ///
    /// Panics if the slot is not free, or the block has a copy.
    pub fn restore_copy(&mut self, slot: u32, block: u64, is_dirty: bool) {
        assert!(self.table.slot_of(block).is_none(), "block {block} has one copy");
        self.table.restore(slot, block, is_dirty);
    }

    /// Continues the counts of an earlier [`Rearranger::hot_list`].
    pub fn restore_counts(&mut self, list: &[HotBlock]) {
        self.analyzer.restore(list);
    }

    /// Continues a period of which this time was left before a restart. Call it before the first request.
    pub fn restore_period(&mut self, left: Nanos) {
        self.period_end = Instant::ZERO + left.min(self.spec.period());
    }

    /// Time that is left of the period.
    pub fn period_left(&self, now: Instant) -> Nanos {
        self.period_end.since(now.min(self.period_end))
    }

    /// The region.
    pub fn region(&self) -> &ReservedRegion {
        &self.region
    }

    /// The places for copies.
    pub fn slots(&self) -> &[RegionSlot] {
        &self.slots
    }

    /// Sectors of a block.
    pub fn block_sectors(&self) -> u64 {
        self.block_sectors
    }

    /// The most referenced blocks of the current period.
    pub fn hot_list(&self, most: usize) -> Vec<HotBlock> {
        self.analyzer.hot_list(most)
    }

    /// The copies in force: slot, block, and whether the copy was written.
    pub fn copies(&self) -> impl Iterator<Item = (u32, u64, bool)> + '_ {
        self.table.copies()
    }

    /// The visible sector whose data a sector of the disk holds, and the sectors from there on for which the same holds. A free slot
    /// holds none; both the home and the copy of a block hold its data.
    pub fn visible_run(&self, sector: Lbn) -> (Option<Lbn>, u64) {
        let (run, next) = self.region.run_at(sector);
        let Some(run) = run else { return (self.region.visible(sector), next - sector) };
        let slot = self.slots.partition_point(|slot| slot.lbn <= sector).checked_sub(1);
        let within = slot.map(|slot| (slot, sector - self.slots[slot].lbn));
        let Some((slot, offset)) = within.filter(|(_, offset)| *offset < self.block_sectors) else {
            return (None, run.first + run.sectors - sector);
        };
        let block = self.table.block_in(slot as u32);
        let visible = block.map(|block| Lbn(block * self.block_sectors + offset));
        (visible, self.block_sectors - offset)
    }

    /// What it is doing.
    pub fn view(&self) -> RearrangeView {
        let (pending_out, pending_in) = self.plan.pending();
        RearrangeView {
            slots: self.slots.len() as u32,
            copies: self.table.valid(),
            dirty: self.table.dirty(),
            pending_out: pending_out as u32,
            pending_in: pending_in as u32,
            block_counters: self.analyzer.counters() as u32,
            periods: self.periods.ended(),
            counters: self.counters,
        }
    }

    /// The periods that have ended, at most the last thousand.
    pub fn periods(&self) -> impl Iterator<Item = &PeriodRecord> {
        self.periods.records()
    }

    /// The counts of the current period.
    pub fn period_counters(&self) -> RearrangeCounters {
        self.periods.counters_since(&self.counters)
    }

    /// Submits a request. Its sectors must be visible ones, at least one except for a flush.
    pub fn submit(&mut self, now: Instant, request: BlockRequest) {
        self.now = now;
        self.pace.request_begins();
        if request.access != BlockAccess::Flush {
            self.count(self.blocks_of(request.lbn, request.sectors));
        }
        self.route(request);
    }

    /// Reports the end of a command of the disk.
    pub fn handle_end(&mut self, now: Instant, id: u32, result: Result<(), BlockError>) {
        self.now = now;
        let command = self.in_flight.commands.remove(id as usize);
        match command.purpose {
            CommandPurpose::CopyRead(copy) => self.end_copy_read(copy, result),
            CommandPurpose::CopyWrite(copy) => self.end_copy_write(copy, result),
            CommandPurpose::Whole(_) | CommandPurpose::Part(_) => {
                self.end_request_command(command, result);
            }
        }
        self.pump();
    }

    /// Reports that the change of a slot ([`RearrangeAction::Record`]) is recorded.
    pub fn handle_recorded(&mut self, now: Instant, slot: u32) {
        self.now = now;
        self.table.finish_change(slot);
        for request in std::mem::take(&mut self.held) {
            self.route(request);
        }
        self.pump();
    }

    /// Carries out what is due at this time.
    pub fn handle_timeout(&mut self, now: Instant) {
        self.now = now;
        if self.period_end <= now {
            self.end_period();
        }
        self.pump();
    }

    /// When to call [`Rearranger::handle_timeout`] if no other call comes before.
    pub fn poll_timeout(&self) -> Option<Instant> {
        let may_copy = !self.plan.is_empty() && self.copies.len() < self.spec.parallel_copies as usize;
        // A copy that may begin now and did not waits for a command or a record.
        let copy = Some(self.pace.next_copy()).filter(|at| may_copy && *at > self.now);
        let at = copy.unwrap_or(Instant::MAX).min(self.period_end);
        (at < Instant::MAX).then_some(at)
    }

    /// The next action for the owner. To be called until there is none, after each other call.
    #[inline]
    pub fn poll_action(&mut self) -> Option<RearrangeAction> {
        self.actions.pop_front()
    }

    /// Empties the region: dirty copies are written home without a pause, and no period ends any more. The homes hold all data once
    /// [`Rearranger::is_dissolved`].
    pub fn dissolve(&mut self, now: Instant) {
        self.now = now;
        self.period_end = Instant::MAX;
        self.pace.hurry();
        self.replace_plan(CopyPlan::emptying(&self.table));
        self.pump();
    }

    /// Begins no more copies and ends no more periods, so that the copies in force do not change, as before an orderly end. Copies in
    /// flight have no effect.
    pub fn suspend(&mut self, now: Instant) {
        self.now = now;
        self.period_end = Instant::MAX;
        self.replace_plan(CopyPlan::default());
    }

    /// Answers the requests that are held with an error, because the table's change will not be recorded.
    pub fn refuse_held(&mut self, now: Instant, error: BlockError) {
        self.now = now;
        for request in std::mem::take(&mut self.held) {
            self.answer(request.ticket, Err(error));
        }
    }

    /// Whether the region holds nothing and no copy is planned or in flight.
    pub fn is_dissolved(&self) -> bool {
        self.plan.is_empty() && self.copies.is_empty() && self.table.is_empty()
    }

    /// The plan by the hot list of the period, and the length of the list.
    fn plan_of_period(&mut self) -> (CopyPlan, u32) {
        let mut hot = self.analyzer.hot_list(self.slots.len());
        hot.retain(|hot| hot.count >= self.spec.least_references && self.is_eligible(hot.block));
        let slots = self.spec.placement.assign(&hot, &self.slots, |block| self.table.slot_of(block));
        (CopyPlan::new(&self.table, &hot, &slots), hot.len() as u32)
    }

    /// The plan by a forecast, and the number of blocks that get a copy.
    fn plan_of_forecast(&self, forecast: &ReferenceForecast) -> (CopyPlan, u32) {
        let mut expected = forecast.expected();
        expected.retain(|block| self.is_eligible(block.block));
        let copies: Vec<(u32, u64, bool)> = self.table.copies().collect();
        let mut free = self.spec.placement.by_dwell(&self.slots);
        free.retain(|slot| self.table.slot(*slot).state == CopyState::Free);
        let chosen = worthwhile_copies(&expected, &copies, &free, self.spec.copy_references);
        let hot = |&(block, _): &(u64, u32)| HotBlock { block, count: 0, error: 0 };
        let hot: Vec<HotBlock> = chosen.iter().map(hot).collect();
        let slots: Vec<u32> = chosen.iter().map(|(_, slot)| *slot).collect();
        (CopyPlan::new(&self.table, &hot, &slots), hot.len() as u32)
    }

    /// Ends the period: plans the copies, and records what happened.
    fn end_period(&mut self) {
        let (plan, hot_blocks) = match self.forecast.take() {
            None => self.plan_of_period(),
            Some(mut forecast) => {
                forecast.end_period(&self.analyzer.hot_list(usize::MAX));
                let plan = self.plan_of_forecast(&forecast);
                self.forecast = Some(forecast);
                plan
            }
        };
        self.replace_plan(plan);
        self.analyzer.age(self.spec.carried());
        self.periods.end(self.period_end, &self.counters, hot_blocks, self.table.valid());
        let (period, late) = (self.spec.period(), self.now.since(self.period_end));
        self.period_end = self.period_end.saturating_add(Nanos((late.0 / period.0 + 1) * period.0));
    }

    /// Panics if the state is inconsistent.
    pub fn check(&self) {
        self.table.check();
        let in_slots = |slot: u32| {
            let uses = |command: &InFlightCommand| {
                command.slots.is_some_and(|(first, last)| (first..=last).contains(&slot))
            };
            self.in_flight.commands.iter().filter(|(_, command)| uses(command)).count() as u32
        };
        let has_requests = self.pace.requests() > 0;
        for slot in 0..self.slots.len() as u32 {
            let (holds, commands) = (self.table.slot(slot), in_slots(slot));
            // Whole requests have no record of their slot.
            let is_counted = has_requests && holds.reads + holds.writes >= commands;
            assert!(is_counted || holds.reads + holds.writes == commands, "slot {slot} counts its commands");
        }
        let is_idle = self.in_flight.is_empty() && self.actions.is_empty();
        assert!(
            !is_idle || self.held.is_empty() || self.table.is_changing(),
            "a request is held for nothing"
        );
    }
}
