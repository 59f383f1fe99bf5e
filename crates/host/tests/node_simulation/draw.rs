//! Random parameters of a simulation other than its clients: the disk, the node's configuration, all delays, and the end.

use headstack_host::disk::{Emulator, EmulatorFaults, Store, Volume};
use headstack_host::node::{NodeCore, Shape};
use headstack_model::{DriveSpec, Instant, Lbn, Nanos, SpecError, drives};
use headstack_sim::{Drive, DriveSource, Engine, Fault, NewDrives, Rig};
use headstack_streams::position::{DriveModel, PositionOrder, PositionQueue};
use headstack_streams::streams::{Classifier, Config, RegionForm, Turns};
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;
use std::sync::Arc;

/// Drives with a write-back cache, with another order, and without any.
const DRIVES: [&str; 4] = ["wd800jd", "st2000dm006", "atlas-10k", "eagle-m2361a"];

/// The delays.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ways {
    start: Nanos,
    tell: Nanos,
    wake: Nanos,
    /// Whether the bytes of a request stay with the disk until they are sent.
    pub(crate) leaves: bool,
}

impl Ways {
    pub(crate) fn draw(random: &mut Pcg64Mcg) -> Ways {
        let mut late = |most: u64| Nanos([0, 0, 50_000, 5_000_000, most][random.random_range(0..5)]);
        let (start, tell, wake) = (late(50_000_000), late(50_000_000), late(1_000_000_000));
        Ways { start, tell, wake, leaves: random.random_bool(0.3) }
    }

    /// How long a command is on its way to the disk.
    pub(crate) fn put_off(&self, random: &mut Pcg64Mcg) -> Nanos {
        Nanos(random.random_range(0..=self.start.0))
    }

    /// How long its end is on its way back.
    pub(crate) fn tell_late(&self, random: &mut Pcg64Mcg) -> Nanos {
        Nanos(random.random_range(0..=self.tell.0))
    }

    /// How late the node wakes.
    pub(crate) fn wake_late(&self, random: &mut Pcg64Mcg) -> Nanos {
        Nanos(random.random_range(0..=self.wake.0))
    }
}

/// How it ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    /// All clients have what they asked for.
    Quiet,
    /// The power of node and disk goes.
    PowerCut(Instant),
    /// The node is killed, and its disk is not.
    Killed(Instant),
    /// The disk's power goes, and the node's stays.
    DiskDark(Instant),
    /// The disk dies.
    DiskDead(Instant),
}

impl End {
    pub(crate) fn draw(random: &mut Pcg64Mcg) -> End {
        let within = [50_000_000, 1_000_000_000, 10_000_000_000][random.random_range(0..3)];
        let at = Instant(random.random_range(0..within));
        match random.random_range(0..10) {
            0..=2 => End::Quiet,
            3..=5 => End::PowerCut(at),
            6..=7 => End::Killed(at),
            8 => End::DiskDark(at),
            _ => End::DiskDead(at),
        }
    }

    /// The time of the end, if it does not wait for the clients.
    pub(crate) fn at(self) -> Option<Instant> {
        match self {
            End::Quiet | End::DiskDead(_) => None,
            End::PowerCut(at) | End::Killed(at) | End::DiskDark(at) => Some(at),
        }
    }
}

/// Draws a node's configuration: little memory, and a classifier that quickly detects streams and quickly drops them.
pub(crate) fn config(random: &mut Pcg64Mcg) -> Config {
    let mut one_of = |values: &[u64]| values[random.random_range(0..values.len())];
    let memory_bytes = one_of(&[256 << 10, 320 << 10, 1 << 20, 4 << 20]);
    let read_ahead_bytes = one_of(&[0, 16 << 10, 64 << 10, 128 << 10]);
    let dispatch_set = one_of(&[0, 1, 2, 5]);
    let requests_per_turn = one_of(&[0, 1, 3, 16]);
    let given = |value: u64| (value > 0).then_some(value);
    let mut config = Config {
        scheduling: one_of(&[0, 1, 1, 1, 1, 1, 1, 1]) == 1,
        memory_bytes,
        read_ahead_bytes: given(read_ahead_bytes),
        dispatch_set: given(dispatch_set).map(|value| value as u32),
        requests_per_turn: given(requests_per_turn).map(|value| value as u32),
        turns: if one_of(&[0, 1]) == 0 { Turns::Nearest } else { Turns::RoundRobin },
        classifier: Classifier {
            block_bytes: one_of(&[512, 4096, 16384]),
            region_blocks: one_of(&[16, 128]) as u32,
            threshold: one_of(&[2, 3, 8]) as u32,
            regions: one_of(&[16, 4096]) as u32,
            ..Classifier::default()
        },
        coalesce_writes: one_of(&[0, 1, 1, 1]) == 1,
        coalesce_ms: one_of(&[0, 1, 20, 200]) as f64,
        idle_ms: one_of(&[500, 3000, 30_000]) as f64,
        queue_depth: one_of(&[1, 2, 32]) as u32,
        direct_bytes: one_of(&[4096, 64 << 10, 4 << 20]),
        bypass_bytes: one_of(&[0, 4096, 256 << 10]),
        ..Config::default()
    };
    if one_of(&[0, 0, 0, 1]) == 1 {
        config.classifier.form = RegionForm::Around;
    }
    config
}

/// A disk of a kind that the seed says, with zeros in it.
pub(crate) fn emulator(seed: u64, drives: &[Drawable], faults: impl FnOnce(&mut Engine, u64)) -> Emulator {
    let drive = &drives[(seed % drives.len() as u64) as usize];
    let rig = &drive.rig;
    let mut engine = rig.build_with(seed, drive).expect("the drive is good");
    let info = rig.volumes().remove(0);
    faults(&mut engine, info.bytes());
    let store = Store::memory(info.bytes()).expect("unused memory is free");
    let volumes = vec![Volume::new(info, store)];
    Emulator::new(engine, volumes, EmulatorFaults::default()).expect("a drive tells what is on its media")
}

/// A drive that simulations have.
pub(crate) struct Drawable {
    rig: Rig,
    /// The parts that do not change, built once for all simulations.
    drive: Arc<Drive>,
    model: DriveModel,
    /// Of a disk of the same size that turns at another speed.
    other: DriveModel,
}

/// The rig has no other drive.
impl DriveSource for Drawable {
    fn drive(&self, _spec: &DriveSpec) -> Result<Arc<Drive>, SpecError> {
        Ok(Arc::clone(&self.drive))
    }
}

/// The drives that simulations have.
pub(crate) fn drives() -> Vec<Drawable> {
    let drawable = |name: &&str| {
        let spec = drives::load(name).expect("the drive is shipped");
        let mut other = spec.clone();
        other.mechanics.rpm *= 1.07;
        let model = |spec: &DriveSpec| DriveModel::new(spec).expect("the drive is good");
        let drive = NewDrives.drive(&spec).expect("the drive is good");
        Drawable { model: model(&spec), other: model(&other), drive, rig: Rig::from_drive(spec) }
    };
    DRIVES.iter().map(drawable).collect()
}

/// The node, with an order of the disk's commands in some simulations.
pub(crate) fn node(seed: u64, drives: &[Drawable], config: Config, shape: Shape) -> NodeCore<u64> {
    let mut core = NodeCore::new(config, shape).expect("it is in range");
    order(seed, drives).into_iter().for_each(|order| core.add_layer(Box::new(order)));
    core
}

/// Draws an order of the disk's commands for two simulations in five; one of these two uses the drive file of another disk.
fn order(seed: u64, drives: &[Drawable]) -> Option<PositionQueue> {
    // Draws of its own, so that the others of a seed stay the same.
    let mut random = Pcg64Mcg::seed_from_u64(seed ^ 0x006f_7264_6572);
    let drive = &drives[(seed % drives.len() as u64) as usize];
    let model = match random.random_range(0..5) {
        0 => &drive.model,
        1 => &drive.other,
        _ => return None,
    };
    let name = ["position", "cylinder", "wstf", "look"][random.random_range(0..4)];
    let window = [1, 1, 2, 8][random.random_range(0..4)];
    let order = PositionOrder::new(name, window).expect("it is in the list");
    Some(PositionQueue::new(model.clone(), order))
}

/// Makes blocks of a disk unreadable until they are written.
pub(crate) fn spoil(engine: &mut Engine, (first, blocks): (u64, u64)) {
    let fault = Fault::Medium { start: Lbn(first), end: Lbn(first + blocks), turns: Some(1), stays: false };
    engine.inject(0, fault).expect("the blocks are the disk's");
}

/// Has a disk die.
pub(crate) fn kill(engine: &mut Engine, from: Instant) {
    engine.inject(0, Fault::Dead { from, timeout: Nanos::ZERO }).expect("any drive can die");
}
