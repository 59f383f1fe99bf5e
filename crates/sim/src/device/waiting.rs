//! The commands that wait for the arm, and the choice of the next one. Priority:
//!
//! 1. commands for the head of the queue, the youngest first;
//! 2. a command older than `age_limit_ms`;
//! 3. urgent commands, with `urgent_first`, or a command that `limits.rs` prefers for its duration limit;
//! 4. the drive's order, over the `window` oldest commands.
//!
//! A drive that commits commands (`queue.committed`) makes this choice ahead: the chosen ones follow in the order in which they were chosen.
//! A command that continues a sequential run may go before all of them (`stream.rs`).

use super::job::Job;
use super::limits::Limited;
use headstack_model::{DriveSpec, Instant, Lbn, Nanos};
use headstack_policy::order::{self, Edge, Order, OrderError, QueueOrder};
use headstack_policy::{AccessCost, Queue, Slot, SlotId};
use std::collections::VecDeque;

#[derive(Debug)]
pub(super) struct Waiting {
    order: QueueOrder,
    /// The order among commands that are not urgent, if it differs from the drive's.
    others_order: Option<QueueOrder>,
    window: Queue,
    /// Commands that wait until the window has room.
    overflow: VecDeque<Slot>,
    /// Urgent commands, with `urgent_first`.
    urgent: Option<Queue>,
    /// Commands with a duration limit, of a drive that has them.
    limited: Option<Box<Limited>>,
    head: Vec<Slot>,
    /// The commands that were chosen ahead, first to go first.
    committed: VecDeque<Slot>,
    /// The most of them, and the most of them that an urgent command cannot overtake.
    committed_max: usize,
    committed_urgent_max: usize,
    /// Chosen commands that go before the urgent ones that wait.
    before_urgent: usize,
    /// The number of commands in all of these.
    count: usize,
    /// Whether an order must be called even for a single waiting command.
    must_ask: bool,
    /// Whether the order alone chooses among the commands that are not for the head of the queue.
    is_plain: bool,
    age_limit: Option<Nanos>,
    /// Which order made the last choice.
    chooser: Chooser,
}

/// Whether the oldest command of a queue is as old as the limit.
fn is_late(queue: &Queue, now: Instant, limit: Option<Nanos>) -> bool {
    match (limit, queue.slots().first()) {
        (Some(limit), Some(oldest)) => now.since(oldest.arrived) >= limit,
        _ => false,
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Chooser {
    None,
    Order,
    Others,
}

impl Waiting {
    /// *Errors:* an unknown order among the commands that are not urgent.
    pub(super) fn new(spec: &DriveSpec, order: QueueOrder, depth: usize) -> Result<Waiting, OrderError> {
        let others = spec.queue.others_order.as_deref().filter(|_| spec.queue.urgent_first);
        let limits = spec.queue.duration_limits.as_ref().filter(|_| !spec.queue.urgent_first);
        let window = spec.queue.window.map_or(depth, |window| (window as usize).min(depth));
        let age_limit = spec.queue.age_limit_ms.map(Nanos::from_ms);
        let others_order = others.map(|name| order::built_in(name).map(QueueOrder::from)).transpose()?;
        let must_ask =
            [Some(&order), others_order.as_ref()].into_iter().flatten().any(QueueOrder::is_always_consulted);
        let uses_places = order.uses_places() || others_order.is_some();
        let queue = if uses_places { Queue::new } else { Queue::by_arrival };
        Ok(Waiting {
            must_ask,
            is_plain: !spec.queue.urgent_first && limits.is_none() && age_limit.is_none(),
            order,
            others_order,
            window: queue(window),
            overflow: VecDeque::with_capacity(depth),
            urgent: spec.queue.urgent_first.then(|| queue(depth)),
            limited: limits.map(|limits| Box::new(Limited::new(limits, age_limit))),
            head: Vec::new(),
            committed: VecDeque::new(),
            committed_max: spec.queue.committed as usize - 1,
            committed_urgent_max: spec.queue.committed_urgent.unwrap_or(spec.queue.committed) as usize - 1,
            before_urgent: 0,
            count: 0,
            age_limit,
            chooser: Chooser::None,
        })
    }

    pub(super) fn set_order(&mut self, order: Box<dyn Order>) {
        self.order = order.into();
        self.others_order = None;
        self.must_ask = self.order.is_always_consulted();
        self.window.index();
        self.urgent.iter_mut().for_each(Queue::index);
    }

    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Whether the order must be called even for a single waiting command.
    #[inline]
    pub(super) fn must_ask(&self) -> bool {
        self.must_ask
    }

    pub(super) fn begins_at(&self, lbn: Lbn) -> bool {
        let begins = |queue: &Queue| queue.slots().iter().any(|slot| slot.request.lbn == lbn);
        begins(&self.window)
            || self.committed.iter().any(|slot| slot.request.lbn == lbn)
            || self.urgent.as_ref().is_some_and(begins)
            || self.limited.iter().any(|limited| limited.slots().any(|slot| slot.request.lbn == lbn))
    }

    pub(super) fn add(&mut self, slot: Slot) {
        self.count += 1;
        let slot = match self.limited.as_mut() {
            Some(limited) if slot.limit > 0 => match limited.add(slot) {
                Some(without) => without,
                None => return,
            },
            _ => slot,
        };
        let queue = match &mut self.urgent {
            Some(urgent) if slot.urgent => {
                if urgent.is_empty() {
                    self.before_urgent = self.committed.len().min(self.committed_urgent_max);
                }
                urgent
            }
            _ if self.window.is_full() => return self.overflow.push_back(slot),
            _ => &mut self.window,
        };
        queue.insert(slot).expect("it has room for all, or was seen to have room");
    }

    pub(super) fn add_at_head(&mut self, slot: Slot) {
        self.count += 1;
        self.head.push(slot);
    }

    /// Removes the command that goes next, if one may go.
    #[inline]
    pub(super) fn choose<C: AccessCost>(&mut self, cost: &C, now: Instant) -> Option<SlotId> {
        let chosen = if self.is_plain && self.head.is_empty() && self.committed.is_empty() {
            self.remove_by_order(cost, now)?.id
        } else {
            self.remove_committed(cost, now)?
        };
        self.count -= 1;
        Some(chosen)
    }

    /// Removes the command that goes next: one chosen ahead, unless one for the head of the queue or an urgent one goes before it.
    #[inline(never)]
    fn remove_committed<C: AccessCost>(&mut self, cost: &C, now: Instant) -> Option<SlotId> {
        let waits_urgently = self.urgent.as_ref().is_some_and(|urgent| !urgent.is_empty());
        if self.head.is_empty()
            && !(waits_urgently && self.before_urgent == 0)
            && let Some(next) = self.committed.pop_front()
        {
            self.before_urgent = self.before_urgent.saturating_sub(1);
            self.chooser = Chooser::None;
            return Some(next.id);
        }
        self.remove_next(cost, now).map(|slot| slot.id)
    }

    /// Whether a command may be chosen ahead now: there is one, and fewer are chosen than the drive commits, one of which is a
    /// destage if these `alternate` with commands.
    #[inline]
    pub(super) fn may_commit(&self, alternate: bool) -> bool {
        let most = self.committed_max.saturating_sub(usize::from(alternate));
        // Urgent commands are not chosen ahead: they have fewer before them.
        self.urgent.as_ref().is_none_or(Queue::is_empty)
            && self.committed.len() < most
            && self.count > self.committed.len()
    }

    /// The commands that were chosen ahead, first to go first.
    pub(super) fn committed(&self) -> impl Iterator<Item = SlotId> + '_ {
        self.committed.iter().map(|slot| slot.id)
    }

    /// Chooses one more command ahead, by its cost after those chosen before; false if none may be chosen.
    pub(super) fn commit<C: AccessCost>(&mut self, cost: &C, now: Instant) -> bool {
        let next = if self.is_plain && self.head.is_empty() {
            self.remove_by_order(cost, now)
        } else {
            self.remove_next(cost, now)
        };
        self.committed.extend(next);
        next.is_some()
    }

    /// Removes the command that the order chooses.
    #[inline]
    fn remove_by_order<C: AccessCost>(&mut self, cost: &C, now: Instant) -> Option<Slot> {
        self.chooser = Chooser::None;
        let index = match self.window.len() {
            0 => return None,
            1 if !self.must_ask => 0,
            _ => {
                self.chooser = Chooser::Order;
                self.order.pick(&self.window.view(now), cost)?
            }
        };
        let chosen = self.window.remove(index);
        if !self.overflow.is_empty() {
            self.refill_window();
        }
        Some(chosen)
    }

    /// Moves the oldest command that waits for the window into it, if there is room.
    #[inline(never)]
    fn refill_window(&mut self) {
        if !self.window.is_full()
            && let Some(next) = self.overflow.pop_front()
        {
            self.window.insert(next).expect("it was seen to have room");
        }
    }

    #[inline(never)]
    fn remove_next<C: AccessCost>(&mut self, cost: &C, now: Instant) -> Option<Slot> {
        self.chooser = Chooser::None;
        if let Some(slot) = self.head.pop() {
            return Some(slot);
        }
        let limit = self.age_limit;
        let is_late = |queue: &Queue| is_late(queue, now, limit);
        let (queue, order, chooser) = match (&mut self.urgent, &mut self.others_order) {
            (Some(urgent), _) if !urgent.is_empty() && !is_late(&self.window) => {
                (urgent, &mut self.order, Chooser::Order)
            }
            (_, Some(others)) => (&mut self.window, others, Chooser::Others),
            _ => (&mut self.window, &mut self.order, Chooser::Order),
        };
        let late = is_late(queue);
        let index = match queue.len() {
            0 => return self.limited.as_mut()?.choose(cost, now, None),
            _ if late => 0,
            1 if !order.is_always_consulted() => 0,
            _ => {
                self.chooser = chooser;
                order.pick(&queue.view(now), cost)?
            }
        };
        if let Some(limited) = self.limited.as_mut().filter(|limited| !limited.is_empty() && !late) {
            let other = cost.positioning(&queue.slots()[index]);
            if let Some(slot) = limited.choose(cost, now, Some(other)) {
                self.chooser = Chooser::None;
                return Some(slot);
            }
        }
        let chosen = queue.remove(index);
        self.refill_window();
        Some(chosen)
    }

    /// Whether a sequential run may keep the arm at `now`: no waiting command goes before all others, and none is as old as the age limit.
    pub(super) fn allows_hold(&self, now: Instant) -> bool {
        self.head.is_empty()
            && self.urgent.as_ref().is_none_or(Queue::is_empty)
            && self.limited.as_ref().is_none_or(|limited| limited.is_empty())
            && !self.is_overdue(now)
    }

    /// Whether a waiting command is as old as the age limit.
    #[inline]
    pub(super) fn is_overdue(&self, now: Instant) -> bool {
        self.age_limit.is_some_and(|limit| {
            let oldest = self.committed.front().into_iter().chain(self.window.slots().first());
            oldest.into_iter().any(|slot| now.since(slot.arrived) >= limit)
        })
    }

    /// Whether a waiting command is none of `run`.
    pub(super) fn has_others(&self, run: impl Fn(&Slot) -> bool) -> bool {
        let of_run = self.candidates().filter(|slot| run(slot)).count();
        of_run < self.count
    }

    /// The commands among which those of a sequential run are searched: of an order by arrival only the next one.
    pub(super) fn candidates(&self) -> impl Iterator<Item = &Slot> {
        let most = if self.order.uses_places() { usize::MAX } else { 1 };
        self.committed.iter().chain(self.window.slots()).take(most)
    }

    /// Removes a command that [`Waiting::candidates`] returned.
    pub(super) fn remove(&mut self, id: SlotId) {
        self.count -= 1;
        if let Some(index) = self.committed.iter().position(|slot| slot.id == id) {
            self.committed.remove(index);
            self.before_urgent = self.before_urgent.min(self.committed.len());
            return;
        }
        let index = self.window.slots().iter().position(|slot| slot.id == id);
        self.window.remove(index.expect("it waits"));
        self.refill_window();
    }

    /// Whether the drive has duration limits.
    #[inline(always)]
    pub(super) fn has_limits(&self) -> bool {
        self.limited.is_some()
    }

    /// The duration limits of reads that abort no command, by number, each with its time.
    pub(super) fn reads_without_abort(&self) -> &[(u8, Nanos)] {
        self.limited.as_ref().map_or(&[], |limited| limited.reads_without_abort())
    }

    /// Removes a command whose duration limit is exceeded and whose policy is to abort it.
    pub(super) fn take_aborted(&mut self, now: Instant) -> Option<SlotId> {
        let aborted = self.limited.as_mut()?.take_aborted(now)?;
        self.count -= 1;
        Some(aborted)
    }

    /// Whether an access from `begins` to `ends` exceeds a limit of its command whose policy is to abort it.
    pub(super) fn ends_aborted(&self, job: &Job, begins: Instant, ends: Instant) -> bool {
        self.limited.as_ref().is_some_and(|limited| limited.ends_aborted(job, begins, ends))
    }

    /// The edges of the disk that the arm visits on its way to the command returned last.
    pub(super) fn way(&self) -> &[Edge] {
        match (self.chooser, &self.others_order) {
            (Chooser::None, _) => &[],
            (Chooser::Others, Some(others)) => others.edges_visited(),
            _ => self.order.edges_visited(),
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::{Device, DeviceOptions, Engine, HostSpec};
    use headstack_model::{Instant, drives};
    use headstack_policy::QueueView;
    use headstack_policy::order::{AccessCost, BuiltIn, Order, built_in};
    use headstack_workload::{Closed, Pattern, Region, Shape};

    /// An order of the list, called as a program's own is.
    #[derive(Debug)]
    struct Own(BuiltIn);

    impl Order for Own {
        fn choose(&mut self, queue: &QueueView<'_>, cost: &dyn AccessCost) -> Option<usize> {
            self.0.choose(queue, cost)
        }
    }

    fn own(name: &str) -> Box<dyn Order> {
        Box::new(Own(built_in(name).expect("it is in the list")))
    }

    fn device(order: &str, depth: u32) -> Device {
        let spec = drives::load("atlas-10k").expect("the drive ships");
        let options = DeviceOptions { seed: 1, depth: Some(depth), order: Some(order.to_string()) };
        Device::new(&spec, &options).expect("a shipped drive works")
    }

    /// The requests in the order of their ends, each with its end.
    fn ends(mut engine: Engine) -> Vec<(u64, Instant)> {
        let region = Region::whole(engine.device(0).sectors());
        let shape = Shape { region, pattern: Pattern::Random, sectors: 8, alignment: 8, read_share: 0.7 };
        let mut load = Closed::new(shape, 16, 2000, 1).expect("the load fits");
        let mut ends = Vec::new();
        engine.run(&mut load, &mut |finished| ends.push((finished.id, finished.completion.completed)));
        ends
    }

    #[test]
    fn custom_device_order_serves_like_its_built_in_equal() {
        for name in ["sptf", "look", "c-look"] {
            let of_the_list = ends(Engine::new(vec![device(name, 16)]));
            assert_eq!(
                ends(Engine::new(vec![device("fcfs", 16).with_order(own(name))])),
                of_the_list,
                "{name}"
            );
            let mut engine = Engine::new(vec![device("fcfs", 16)]);
            engine.set_order(0, own(name));
            assert_eq!(ends(engine), of_the_list, "{name}");
            assert_ne!(ends(Engine::new(vec![device("fcfs", 16)])), of_the_list, "{name}");
        }
    }

    #[test]
    fn custom_host_order_replaces_the_configured_order() {
        let host = |order: Option<&str>| {
            let mut host = HostSpec::default();
            host.queue.order = order.map(str::to_string);
            Engine::with_host(vec![device("fcfs", 1)], &host).expect("the host works")
        };
        let mut engine = host(Some("fcfs"));
        engine.set_host_order(0, own("sstf-lbn")).expect("the host has an order");
        let found = ends(engine);
        assert_eq!(found, ends(host(Some("sstf-lbn"))));
        assert_ne!(found, ends(host(Some("fcfs"))));
        let refused = host(None).set_host_order(0, own("fcfs")).expect_err("the host has no order");
        let text = "host.queue.order: an own order needs one in whose place it comes; `fcfs` is one";
        assert_eq!(refused.to_string(), text);
    }
}
