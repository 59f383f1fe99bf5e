//! A host's queue in front of a real disk, ordered by position while the drive file agrees with the disk, else by block number.

use super::drive_model::DriveModel;
use super::estimator::{MapState, PositionEstimator};
use crate::streams::{Command, DiskLayer, LayerEnd, LayerRequest, LayerSink};
use headstack_model::spec::nearest;
use headstack_model::{Instant, Nanos, QuantityReport};
use headstack_policy::elevator::{BlockDistance, DiskMap, MappedCost};
use headstack_policy::order::{self, BuiltIn, Knowledge, OrderError};
use headstack_policy::{Queue, Slot, SlotId};
use slab::Slab;
use std::collections::VecDeque;
use thiserror::Error;

/// The order by block number, which the queue uses while no drive file agrees with the disk.
const BY_BLOCK: &str = "c-look";

/// An order that cannot be used in front of a real disk.
#[derive(Clone, Debug, PartialEq, Error)]
#[allow(missing_docs, reason = "the messages say it")]
pub enum PositionOrderError {
    #[error(transparent)]
    Order(#[from] OrderError),
    #[error("order `{name}` needs {needs}, which a host does not know of a real disk; `position` is `sptf`")]
    Knowledge { name: String, needs: &'static str },
    #[error("window: {met} is outside 1 to 256 commands")]
    Window { met: u32 },
}

/// How a disk's commands are ordered.
#[derive(Clone, Debug, PartialEq)]
pub struct PositionOrder {
    name: String,
    order: BuiltIn,
    window: u32,
}

impl PositionOrder {
    /// Largest number of commands at the disk.
    pub const MOST_WINDOW: u32 = 256;

    /// The order that `text` names, with at most `window` commands at the disk: `cylinder` is `c-look-cylinder` and `position` is
    /// `sptf`; else an order of the list with its parameters.
    ///
    /// *Errors:* no such order; one that uses the drive's cache; a window outside 1 to 256.
    pub fn new(text: &str, window: u32) -> Result<PositionOrder, PositionOrderError> {
        let name = match text {
            "cylinder" => "c-look-cylinder",
            "position" => "sptf",
            other => other,
        };
        let of_host = |error| with_names_of_host(text, error);
        let (order, needs) = (order::built_in(name).map_err(of_host)?, order::knowledge(name)?);
        if needs > Knowledge::Position {
            return Err(PositionOrderError::Knowledge { name: name.to_string(), needs: needs.name() });
        }
        if !(1..=PositionOrder::MOST_WINDOW).contains(&window) {
            return Err(PositionOrderError::Window { met: window });
        }
        Ok(PositionOrder { name: name.to_string(), order, window })
    }

    /// The order's name in the list, with its parameters.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Commands at the disk, at most.
    pub fn window(&self) -> u32 {
        self.window
    }
}

/// An unknown order, whose nearest is a name that only a host's queue has where that is more like it.
fn with_names_of_host(text: &str, error: OrderError) -> OrderError {
    match error {
        OrderError::Unknown { name, nearest: of_list } => {
            let names: [&'static str; 3] = ["cylinder", "position", of_list];
            OrderError::Unknown { name, nearest: nearest(text, names).unwrap_or(of_list) }
        }
        other => other,
    }
}

/// A queue at a moment.
#[derive(Clone, Debug, PartialEq)]
#[allow(missing_docs, reason = "the names of the fields say it")]
pub struct OrderView {
    /// The order in use now: the wanted one, or that by block number.
    pub order: String,
    pub wanted: String,
    pub state: MapState,
    pub waiting: usize,
    pub at_disk: u32,
    /// Error that half of the last predictions do not exceed; none without predictions.
    pub error_p50: Option<Nanos>,
    /// Error that nine in ten of the last predictions do not exceed.
    pub error_p90: Option<Nanos>,
    /// Predictions that were compared with their requests.
    pub predictions: u64,
    /// Those of them that were half a turn or more off.
    pub missed: u64,
    pub reserve: Nanos,
    /// How often the queue fell back to order by block number.
    pub fallbacks: u64,
}

impl OrderView {
    /// Adds the order, its queue, and how well the drive file predicts.
    pub fn report(&self, into: &mut QuantityReport) {
        into.fact("in_use", self.order.as_str());
        into.fact("wanted", self.wanted.as_str());
        into.fact("drive_file", self.state.name());
        let help = "1 while commands are ordered by block number because the disk does not answer as its drive file predicts";
        into.gauge("fallback", self.state == MapState::Differs, help).only_metric("order_fallback");
        into.gauge("waiting", self.waiting, "Commands that wait for a place at the disk")
            .metric("order_waiting");
        into.gauge("at_disk", self.at_disk, "Commands at the disk").detail();
        into.gauge("error_p50_ms", self.error_p50, "Error that half of the predictions keep to")
            .metric("prediction_error_seconds");
        into.gauge("error_p90_ms", self.error_p90, "Error that nine in ten of the predictions keep to")
            .detail();
        into.counter("predictions", self.predictions, "Predictions of a request's service");
        into.counter("missed", self.missed, "Predictions that were half a turn or more off")
            .metric("predictions_missed");
        into.gauge("reserve_ms", self.reserve, "Time by which a service is predicted late, for safety")
            .detail();
        into.counter("fallbacks", self.fallbacks, "Times that the drive file ceased to agree with the disk")
            .metric("order_fallbacks");
    }
}

/// Commands that wait for a place at the disk: a layer in front of it, in the node and in the simulator.
#[derive(Debug)]
pub struct PositionQueue<C = Command> {
    wanted: PositionOrder,
    by_block: BuiltIn,
    waiting: Queue,
    /// Commands beyond the queue's capacity, in order of arrival.
    beyond: VecDeque<u32>,
    commands: Slab<(C, Instant)>,
    /// Commands other than reads and writes, which are not ordered.
    others: VecDeque<C>,
    /// Numbers of the ordered commands at the disk.
    at_disk: Vec<u32>,
    blocks: BlockDistance,
    /// None if the drive file is known to be of another disk.
    estimator: Option<PositionEstimator>,
    sector_bytes: u32,
    reported: MapState,
    fallbacks: u64,
}

impl<C: LayerRequest> PositionQueue<C> {
    /// An empty queue in front of the disk of a drive file.
    pub fn new(model: DriveModel, wanted: PositionOrder) -> PositionQueue<C> {
        let (bytes, sector_bytes) = (model.bytes(), model.sector_bytes());
        let estimator = Some(PositionEstimator::new(model));
        PositionQueue { estimator, ..PositionQueue::by_block(bytes, sector_bytes, wanted) }
    }

    /// An empty queue in front of a disk whose drive file describes another disk; it is ordered by block number.
    pub fn by_block(bytes: u64, sector_bytes: u32, wanted: PositionOrder) -> PositionQueue<C> {
        PositionQueue {
            wanted,
            by_block: order::built_in(BY_BLOCK).expect("it is in the list"),
            waiting: Queue::new(Queue::COMMANDS_MAX),
            beyond: VecDeque::new(),
            commands: Slab::new(),
            others: VecDeque::new(),
            at_disk: Vec::new(),
            blocks: BlockDistance::new(bytes / u64::from(sector_bytes)),
            estimator: None,
            sector_bytes,
            reported: MapState::Learning,
            fallbacks: 0,
        }
    }

    /// Accepts a command. Reads and writes wait for a place in the window; all others go next.
    pub fn submit(&mut self, now: Instant, command: C) {
        if command.blocks(self.sector_bytes).is_none() {
            return self.others.push_back(command);
        }
        let number = self.commands.insert((command, now)) as u32;
        if self.waiting.is_full() {
            self.beyond.push_back(number);
        } else {
            self.enter(number);
        }
    }

    /// The next command for the disk; none while the window is full or nothing waits.
    pub fn poll(&mut self, now: Instant) -> Option<C> {
        if let Some(other) = self.others.pop_front() {
            if let Some(estimator) = &mut self.estimator {
                estimator.disturbed();
            }
            return Some(other);
        }
        if self.at_disk.len() >= self.wanted.window as usize || self.waiting.is_empty() {
            return None;
        }
        let index = self.choose(now)?;
        let slot = self.waiting.remove(index);
        if let Some(next) = self.beyond.pop_front() {
            self.enter(next);
        }
        let (command, _) = self.commands.remove(slot.id.0 as usize);
        self.blocks.dispatched(&slot.request);
        if let Some(estimator) = &mut self.estimator {
            estimator.issued(now, command.id(), &slot.request);
        }
        self.at_disk.push(command.id());
        Some(command)
    }

    /// Records that a command of the disk ended, with success or not.
    pub fn completed(&mut self, now: Instant, id: u32, is_good: bool) {
        let found = self.at_disk.iter().position(|other| *other == id);
        if let Some(found) = found {
            self.at_disk.swap_remove(found);
        }
        let Some(estimator) = &mut self.estimator else { return };
        match found {
            Some(_) => _ = estimator.completed(now, id, is_good),
            None => estimator.disturbed(),
        }
    }

    /// The state of the drive file, if it has changed since the last call.
    pub fn poll_change(&mut self) -> Option<MapState> {
        let state = self.state();
        if state == self.reported {
            return None;
        }
        self.reported = state;
        self.fallbacks += u64::from(state == MapState::Differs);
        Some(state)
    }

    /// The queue at this moment.
    pub fn view(&self) -> OrderView {
        let estimator = self.estimator.as_ref();
        let (predictions, missed) = estimator.map_or((0, 0), PositionEstimator::predictions);
        let state = self.state();
        let order = if state == MapState::Agrees { self.wanted.name() } else { BY_BLOCK };
        OrderView {
            order: order.to_string(),
            wanted: self.wanted.name().to_string(),
            state,
            waiting: self.commands.len(),
            at_disk: self.at_disk.len() as u32,
            error_p50: estimator.and_then(|estimator| estimator.error(0.5)),
            error_p90: estimator.and_then(|estimator| estimator.error(0.9)),
            predictions,
            missed,
            reserve: estimator.map_or(Nanos::ZERO, PositionEstimator::reserve),
            fallbacks: self.fallbacks,
        }
    }

    fn state(&self) -> MapState {
        self.estimator.as_ref().map_or(MapState::Differs, PositionEstimator::state)
    }

    fn enter(&mut self, number: u32) {
        let (command, arrived) = self.commands[number as usize];
        let request = command.blocks(self.sector_bytes).expect("only reads and writes wait");
        let estimator = self.estimator.as_ref();
        let (cylinder, head) = estimator.map_or((0, 0), |estimator| estimator.track(request.lbn));
        let slot = Slot::new(SlotId(number), request, arrived, cylinder, head);
        self.waiting.insert(slot).expect("the queue was seen to have room");
    }

    fn choose(&mut self, now: Instant) -> Option<usize> {
        let queue = self.waiting.view(now);
        match &self.estimator {
            Some(estimator) if estimator.state() == MapState::Agrees => {
                let cost = MappedCost::new(estimator, now, self.blocks.last());
                self.wanted.order.pick(&queue, &cost)
            }
            // By block number: the cylinders of the slots are not used.
            _ => self.by_block.pick(&queue, &self.blocks),
        }
    }
}

impl<S: LayerSink> DiskLayer<S> for PositionQueue<S::Request> {
    fn submit(&mut self, now: Instant, request: S::Request, out: &mut S) {
        PositionQueue::submit(self, now, request);
        out.wake_after_arrivals();
    }

    fn complete(&mut self, now: Instant, id: u32, end: S::End, out: &mut S) {
        self.completed(now, id, end.is_good());
        out.up(id, end);
        out.wake_after_arrivals();
    }

    fn wake(&mut self, now: Instant, out: &mut S) {
        while let Some(next) = self.poll(now) {
            out.down(next);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::streams::{RequestKind, TransferBuffer};
    use headstack_model::drives;

    fn model() -> DriveModel {
        DriveModel::new(&drives::load("dec-rz26").expect("it is shipped")).expect("it is consistent")
    }

    fn queue(text: &str, window: u32) -> PositionQueue {
        PositionQueue::new(model(), PositionOrder::new(text, window).expect("it is in the list"))
    }

    fn read(id: u32, block: u64) -> Command {
        let kind = RequestKind::Read { offset: block * 512, bytes: 4096, fua: false };
        Command { id, kind, place: TransferBuffer::None, limit: 0 }
    }

    #[test]
    fn order_and_window_are_checked() {
        let name = |text| PositionOrder::new(text, 1).map(|order| order.name().to_string());
        assert_eq!(name("cylinder").as_deref(), Ok("c-look-cylinder"));
        assert_eq!(name("position").as_deref(), Ok("sptf"));
        assert_eq!(name("vr(0.3)").as_deref(), Ok("vr(0.3)"));
        let error = |text, window| PositionOrder::new(text, window).expect_err("it is wrong").to_string();
        assert!(error("spctf", 1).starts_with("order `spctf` needs position and cache"));
        assert_eq!(error("sptg", 1), "no order is called `sptg`; the nearest is `sptf`");
        assert_eq!(error("positon", 1), "no order is called `positon`; the nearest is `position`");
        assert_eq!(error("cilinder", 1), "no order is called `cilinder`; the nearest is `cylinder`");
        assert_eq!(error("sptf", 0), "window: 0 is outside 1 to 256 commands");
        assert_eq!(error("sptf", 257), "window: 257 is outside 1 to 256 commands");
    }

    #[test]
    fn unproved_drive_file_orders_by_block_number() {
        for text in ["position", "cylinder", "wstf"] {
            let mut queue = queue(text, 1);
            let blocks = [5_000, 900_000, 40, 300_000, 4_000];
            blocks.iter().zip(0..).for_each(|(block, id)| queue.submit(Instant(7), read(id, *block)));
            let mut ids = Vec::new();
            while let Some(command) = queue.poll(Instant(8)) {
                assert_eq!(queue.poll(Instant(8)), None, "the window is full");
                queue.completed(Instant(9), command.id, true);
                ids.push(command.id);
            }
            assert_eq!(ids, [2, 4, 0, 3, 1], "{text}");
            assert_eq!(queue.view().state, MapState::Learning);
        }
    }

    #[test]
    fn every_command_leaves_once_beyond_the_capacity() {
        let mut queue = queue("position", 4);
        let count = 3 * Queue::COMMANDS_MAX as u32;
        (0..count)
            .for_each(|id| queue.submit(Instant(7), read(id, u64::from(id.wrapping_mul(7919) % 1_000_000))));
        assert_eq!(queue.view().waiting, count as usize);
        let (mut at_disk, mut left) = (VecDeque::new(), std::collections::BTreeSet::new());
        loop {
            at_disk.extend(std::iter::from_fn(|| queue.poll(Instant(8))));
            assert!(at_disk.len() <= 4, "the window is kept");
            let Some(command) = at_disk.pop_front() else { break };
            // One in ten fails.
            queue.completed(Instant(9), command.id, command.id % 10 != 0);
            assert!(left.insert(command.id), "{command:?} left twice");
        }
        assert_eq!((left.len(), queue.view().waiting), (count as usize, 0));
    }

    #[test]
    fn flush_and_trim_wait_for_no_place() {
        let mut queue = queue("position", 1);
        queue.submit(Instant(7), read(1, 8));
        queue.submit(Instant(7), read(2, 80));
        assert_eq!(queue.poll(Instant(7)).map(|command| command.id), Some(1));
        let flush = Command { id: 3, kind: RequestKind::Flush, place: TransferBuffer::None, limit: 0 };
        let trim = Command { id: 4, kind: RequestKind::Trim { offset: 0, bytes: 512 }, ..flush };
        queue.submit(Instant(8), flush);
        queue.submit(Instant(8), trim);
        let next: Vec<u32> =
            std::iter::from_fn(|| queue.poll(Instant(8))).map(|command| command.id).collect();
        assert_eq!(next, [3, 4]);
        [3, 1, 4].iter().for_each(|id| queue.completed(Instant(9), *id, true));
        assert_eq!(queue.poll(Instant(9)).map(|command| command.id), Some(2));
    }

    #[test]
    fn drive_file_of_another_size_orders_by_block_number() {
        let order = PositionOrder::new("position", 1).expect("it is in the list");
        let mut queue = PositionQueue::by_block(1 << 30, 512, order);
        [700_000, 20].iter().zip(0..).for_each(|(block, id)| queue.submit(Instant(7), read(id, *block)));
        assert_eq!(queue.poll_change(), Some(MapState::Differs));
        assert_eq!(queue.poll(Instant(7)).map(|command| command.id), Some(1));
        let view = queue.view();
        assert_eq!((view.order.as_str(), view.wanted.as_str(), view.fallbacks), ("c-look", "sptf", 1));
    }
}
