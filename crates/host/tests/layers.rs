//! Layers that serve in both worlds: in front of a simulated disk in the engine, and in front of the same disk in a node's core, where
//! each request has its bytes. Each request has the same time in both.

use headstack_host::disk::{Emulator, EmulatorFaults, Outcome as DiskOutcome, Store, Volume};
use headstack_host::node::{Action, Command, Ended, NodeCore, NodeLayer, Outcome, RequestKind, Shape};
use headstack_host::{BlockError, Operation};
use headstack_model::{Instant, Lbn, Nanos, Op, Request, drives};
use headstack_sim::layer::{Layer, Submission};
use headstack_sim::rig::Rig;
use headstack_sim::{Finished, LayerPlace};
use headstack_streams::position::{DriveModel, PositionOrder, PositionQueue};
use headstack_streams::streams::{Config, DiskLayer, LayerEnd, LayerSink};
use headstack_workload::{Inbox, Issue};
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;
use std::collections::{BTreeMap, VecDeque};

const SECTOR: u64 = 512;

/// Does nothing.
#[derive(Debug)]
struct PassLayer;

impl<S: LayerSink> DiskLayer<S> for PassLayer {}

/// Holds each request for a time.
#[derive(Debug)]
struct DelayLayer<R> {
    delay: Nanos,
    held: VecDeque<(Instant, R)>,
}

impl<R> DelayLayer<R> {
    fn new() -> DelayLayer<R> {
        DelayLayer { delay: Nanos::from_ms(30.0), held: VecDeque::new() }
    }
}

impl<S: LayerSink> DiskLayer<S> for DelayLayer<S::Request> {
    fn submit(&mut self, now: Instant, request: S::Request, out: &mut S) {
        self.held.push_back((now + self.delay, request));
        out.wake_at(self.held[0].0);
    }

    fn wake(&mut self, now: Instant, out: &mut S) {
        while let Some((_, request)) = self.held.front().copied().filter(|(due, _)| *due <= now) {
            self.held.pop_front();
            out.down(request);
        }
        out.wake_at(self.held.front().map_or(Instant::MAX, |(due, _)| *due));
    }
}

/// Counts requests, and those that fail.
#[derive(Debug, Default)]
struct CountLayer {
    requests: u64,
    failed: u64,
}

impl<S: LayerSink> DiskLayer<S> for CountLayer {
    fn submit(&mut self, _now: Instant, request: S::Request, out: &mut S) {
        self.requests += 1;
        out.down(request);
    }

    fn complete(&mut self, _now: Instant, id: u32, end: S::End, out: &mut S) {
        self.failed += u64::from(!end.is_good());
        out.up(id, end);
    }
}

/// Requests with the times at which they arrive.
fn arrivals() -> Vec<(Instant, Request)> {
    let mut random = Pcg64Mcg::seed_from_u64(11);
    let mut now = Instant::ZERO;
    let draw = |_| {
        now += Nanos(random.random_range(1..20_000_000));
        let lbn = Lbn(8 * random.random_range(0..256_000));
        (now, if random.random_bool(0.3) { Request::write(lbn, 8) } else { Request::read(lbn, 8) })
    };
    (0..600).map(draw).collect()
}

fn rig() -> Rig {
    Rig::from_drive(drives::load("dec-rz26").expect("it is shipped"))
}

/// When the engine answers each request behind these layers, the topmost first.
fn times_in_engine(layers: Vec<Box<dyn Layer>>) -> (Vec<Instant>, headstack_sim::Engine) {
    let mut engine = rig().build(1).expect("the drive is good");
    layers.into_iter().rev().for_each(|layer| engine.insert(LayerPlace::Volume(0), layer));
    let mut inbox = Inbox::default();
    for (id, (now, request)) in (0..).zip(arrivals()) {
        inbox.put(now, Issue::new(0, request, id));
    }
    let mut times = BTreeMap::new();
    engine.run(&mut inbox, &mut |done: &Finished| _ = times.insert(done.id, done.completion.completed));
    (times.into_values().collect(), engine)
}

/// A node's core in front of the same disk, emulated in virtual time.
struct NodeWorld {
    core: NodeCore<u64>,
    disk: Emulator,
    now: Instant,
    commands: BTreeMap<u32, Command>,
    times: BTreeMap<u64, Instant>,
}

impl NodeWorld {
    fn new(layers: Vec<NodeLayer>) -> NodeWorld {
        let (rig, info) = (rig(), rig().volumes().remove(0));
        let store = Store::memory(info.bytes()).expect("unused memory is free");
        let shape = Shape { bytes: info.bytes(), block_bytes: info.sector_bytes, read_only: false };
        let engine = rig.build(1).expect("the drive is good");
        let disk = Emulator::new(engine, vec![Volume::new(info, store)], EmulatorFaults::default());
        let config = Config { scheduling: false, guard_cost: 0.0, queue_depth: 4096, ..Config::default() };
        let mut core = NodeCore::new(config, shape).expect("the defaults suit");
        layers.into_iter().for_each(|layer| core.add_layer(layer));
        NodeWorld {
            core,
            disk: disk.expect("it can be emulated"),
            now: Instant::ZERO,
            commands: BTreeMap::new(),
            times: BTreeMap::new(),
        }
    }

    fn run(mut self) -> NodeWorld {
        let mut arrivals: VecDeque<_> = (0..).zip(arrivals()).collect();
        loop {
            let arrives = arrivals.front().map(|(_, (at, _))| *at);
            let times = [arrives, self.disk.poll_timeout(), self.core.poll_timeout()];
            let Some(next) = times.into_iter().flatten().min() else { return self };
            self.now = next;
            self.turn_disk();
            if self.core.poll_timeout().is_some_and(|at| at <= self.now) {
                self.core.handle_timeout(self.now);
                self.carry_out();
            }
            while let Some((ticket, (_, request))) =
                arrivals.front().copied().filter(|(_, (at, _))| *at <= next)
            {
                arrivals.pop_front();
                let (offset, bytes) = (request.lbn.0 * SECTOR, request.sectors * SECTOR as u32);
                let data = vec![ticket as u8; bytes as usize];
                let operation = match request.op {
                    Op::Write => Operation::Write { offset, data, fua: false },
                    _ => Operation::Read { offset, bytes, fua: false },
                };
                self.core.submit(self.now, 1, operation, ticket);
                self.carry_out();
            }
        }
    }

    fn turn_disk(&mut self) {
        self.disk.handle_timeout(self.now);
        while let Some(answered) = self.disk.poll_answer() {
            let command = self.commands.remove(&(answered.ticket as u32)).expect("it is at the disk");
            let ended = answered.result.map(|outcome| match outcome {
                DiskOutcome::Read { .. } => {
                    let offset = command.kind.run().0;
                    self.disk.read(0, offset, self.core.buffer(&command)).expect("the disk is good");
                    Ended::Done
                }
                _ => Ended::Done,
            });
            self.core.end(self.now, command, ended);
            self.carry_out();
        }
    }

    fn carry_out(&mut self) {
        while let Some(action) = self.core.poll_action() {
            match action {
                Action::Start(command) => {
                    let (offset, bytes) = command.kind.run();
                    let operation = match command.kind {
                        RequestKind::Write { fua, .. } => {
                            Operation::Write { offset, data: self.core.data(&command).to_vec(), fua }
                        }
                        _ => Operation::Read { offset, bytes: bytes as u32, fua: false },
                    };
                    self.commands.insert(command.id, command);
                    self.disk.submit(self.now, 0, operation, command.id.into());
                }
                Action::Answer(answered) => {
                    self.times.insert(answered.ticket, self.now);
                    let outcome: Result<Outcome, BlockError> = answered.result;
                    if let Outcome::Read { data, .. } = outcome.expect("the disk is good") {
                        self.core.release(data);
                    }
                }
            }
        }
    }

    fn times(&self) -> Vec<Instant> {
        self.times.values().copied().collect()
    }
}

fn times_in_node(layers: Vec<NodeLayer>) -> Vec<Instant> {
    NodeWorld::new(layers).run().times()
}

#[test]
fn layer_that_does_nothing_changes_no_time_in_either_world() {
    let (bare, _) = times_in_engine(Vec::new());
    assert_eq!(times_in_engine(vec![Box::new(PassLayer)]).0, bare);
    assert_eq!(times_in_node(Vec::new()), bare);
    assert_eq!(times_in_node(vec![Box::new(PassLayer), Box::new(PassLayer)]), bare);
}

#[test]
fn layer_that_delays_has_the_same_times_in_both_worlds() {
    let (bare, _) = times_in_engine(Vec::new());
    let (engine, _) = times_in_engine(vec![Box::new(DelayLayer::new()), Box::new(PassLayer)]);
    let early = engine.iter().zip(arrivals()).find(|(time, (at, _))| **time < *at + Nanos::from_ms(30.0));
    assert!(engine != bare && early.is_none(), "{early:?} of {}", engine.len());
    assert!(times_in_node(vec![Box::new(DelayLayer::new()), Box::new(PassLayer)]) == engine);
}

#[test]
fn layer_that_counts_counts_the_same_in_both_worlds() {
    let (_, engine) = times_in_engine(vec![Box::new(CountLayer::default())]);
    let world = NodeWorld::new(vec![Box::new(CountLayer::default())]).run();
    let (virtual_count, node_count) = (engine.layer::<CountLayer>(0), world.core.layer::<CountLayer>());
    for counted in [virtual_count, node_count] {
        let CountLayer { requests, failed } = counted.expect("it is there");
        assert_eq!((*requests, *failed), (600, 0));
    }
}

#[test]
fn order_by_position_serves_at_the_same_times_in_both_worlds() {
    let (by_arrival, _) = times_in_engine(Vec::new());
    for (name, window) in [("position", 1), ("cylinder", 1), ("c-look", 1), ("position", 3)] {
        let spec = drives::load("dec-rz26").expect("it is shipped");
        let model = DriveModel::new(&spec).expect("it is consistent");
        let order = PositionOrder::new(name, window).expect("it is in the list");
        let queue: PositionQueue<Submission> = PositionQueue::new(model.clone(), order.clone());
        let (engine, _) = times_in_engine(vec![Box::new(queue)]);
        assert!(engine != by_arrival, "{name}");
        let queue: PositionQueue = PositionQueue::new(model, order);
        assert!(times_in_node(vec![Box::new(queue)]) == engine, "{name}, {window} at the disk");
    }
}
