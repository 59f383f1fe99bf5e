//! Buses, loops and interfaces that drives share on the way to the host: their rate is limited, and they lose no request.

use crate::support::seeded;
use headstack_model::{Instant, Lbn, Nanos, Op, Request, drives};
use headstack_sim::{Completion, Engine, Finished, Observer, Rig, Tenure};
use headstack_workload::{Issue, Load, Poll};
use rand::RngExt;
use std::collections::BTreeMap;

/// Runs of equally spaced requests. Each run is on one volume and has one request outstanding.
struct Runs {
    next: Vec<(u32, Request)>,
    /// Distance in blocks from one request of a run to the next.
    step: u64,
    /// Indices of the runs without an outstanding request.
    ready: Vec<usize>,
    left: u64,
}

impl Runs {
    fn new(starts: &[(u32, Request)], step: u64, requests: u64) -> Runs {
        Runs { next: starts.to_vec(), step, ready: (0..starts.len()).collect(), left: requests }
    }
}

impl Load for Runs {
    fn poll(&mut self, _now: Instant) -> Poll {
        if self.left == 0 {
            return Poll::Done;
        }
        let Some(run) = self.ready.pop() else { return Poll::Waiting };
        self.left -= 1;
        let (volume, request) = self.next[run];
        self.next[run].1.lbn = request.lbn + self.step;
        Poll::Issue(Issue::new(volume, request, run as u64))
    }

    fn handle_completion(&mut self, _now: Instant, id: u64) {
        self.ready.push(id as usize);
    }
}

/// An engine with four fast disks on the bus that `bus` describes.
fn four(bus: &str) -> Engine {
    let drive = "[drive]\npreset = \"exos-x18\"\ncount = 4\ncache.read_ahead_over_requested = false";
    let text = format!("{drive}\nbus = {{ read_us_per_sector = 0.1, write_us_per_sector = 0.1 }}\n\n{bus}");
    let rig = Rig::parse(&text, "four.toml", &mut |name| drives::load(name));
    rig.and_then(|rig| rig.build(1)).unwrap_or_else(|error| panic!("{error}"))
}

fn run(engine: &mut Engine, mut load: Runs) -> Vec<Finished> {
    let mut finished = Vec::new();
    engine.run(&mut load, &mut |one| finished.push(*one));
    for link in engine.link_usage() {
        assert!(link.busy <= engine.now().since_start(), "{link:?} in {}", engine.now());
    }
    finished
}

/// Runs sequential requests of 64 KiB on these volumes. Returns the total rate in bytes per second.
fn rate(bus: &str, volumes: &[(u32, Op)]) -> f64 {
    let start = |(volume, op): &(u32, Op)| (*volume, Request { op: *op, ..Request::read(Lbn(1 << 20), 128) });
    let starts: Vec<(u32, Request)> = volumes.iter().map(start).collect();
    let mut engine = four(bus);
    let finished = run(&mut engine, Runs::new(&starts, 128, 2_000 * volumes.len() as u64));
    finished.len() as f64 * 65_536.0 / end(&finished).as_secs()
}

/// The completion time of the last request. The engine's time may be later, because drives read ahead.
fn end(finished: &[Finished]) -> Instant {
    finished.last().expect("something was asked").completion.completed
}

const LOOP: &str = "[bus]\nkind = \"ssa-loop\"\n";

#[test]
fn loop_with_any_link_cut_completes_every_request() {
    let uncut = four(LOOP);
    for cut in 0..=4 {
        let mut engine = four(&format!("{LOOP}cut_links = [{cut}]"));
        let starts: Vec<(u32, Request)> = (0..32)
            .map(|run| {
                let lbn = Lbn(u64::from(run) * 1_000_000_007);
                (run % 4, if run % 3 == 0 { Request::write(lbn, 40) } else { Request::read(lbn, 300) })
            })
            .collect();
        let finished = run(&mut engine, Runs::new(&starts, 12_345, 1_000));
        assert_eq!(finished.len(), 1_000, "link {cut} cut");
        assert_eq!(engine.link_usage().len(), uncut.link_usage().len());
    }
}

#[test]
fn disjoint_loop_arcs_each_carry_the_full_rate() {
    let (read, write) = (Op::Read, Op::Write);
    let one = rate(LOOP, &[(0, read)]);
    // The link limits the rate, together with the drive's overhead between two requests of 64 KiB.
    assert!((14e6..20e6).contains(&one), "{one}");
    let both = rate(LOOP, &[(0, read), (3, read)]);
    assert!((both / one - 2.0).abs() < 0.01, "{both} of {one}");
    let far = rate(LOOP, &[(1, read), (2, read)]);
    assert!((far / one - 2.0).abs() < 0.01, "{far} of {one}");
    // The two directions of a link are separate lines.
    let write_alone = rate(LOOP, &[(0, write)]);
    let opposite = rate(&format!("{LOOP}cut_links = [4]"), &[(0, read), (1, write)]);
    assert!((opposite / (one + write_alone) - 1.0).abs() < 0.03, "{opposite} of {one} and {write_alone}");
}

#[test]
fn cut_loop_carries_the_rate_of_one_link() {
    let all = [0, 1, 2, 3].map(|volume| (volume, Op::Read));
    let whole = rate(LOOP, &all);
    let cut = rate(&format!("{LOOP}cut_links = [4]"), &all);
    assert!((39e6..=40e6).contains(&whole), "{whole}");
    assert!((19.5e6..=20e6).contains(&cut), "{cut}");
}

#[test]
fn loop_transfer_hides_behind_media_except_for_hops() {
    // The media have a tenth of the link's rate: when the last sector has been read, only the last frame has to be sent.
    let slow = |bus: &str| {
        let text = format!("[drive]\npreset = \"hp-c2247a\"\ncache.enabled = false\n{bus}");
        let rig = Rig::parse(&text, "one.toml", &mut |name| drives::load(name));
        let mut engine = rig.and_then(|rig| rig.build(1)).unwrap_or_else(|error| panic!("{error}"));
        let starts = [(0, Request::read(Lbn(1_000), 64))];
        run(&mut engine, Runs::new(&starts, 30_011, 50))
    };
    let frame = 6_400;
    let bare = slow("bus.read_us_per_sector = 25.6\n");
    let looped = slow(&format!("bus.read_us_per_sector = 0.0\n{LOOP}"));
    for (bare, looped) in bare.iter().zip(&looped) {
        let (bare, looped) = (bare.completion.parts, looped.completion.parts);
        assert!(looped.bus.0 <= bare.bus.0 + 2 * frame, "{looped:?} where a bus needs {bare:?}");
        assert!(looped.overhead.0.abs_diff(bare.overhead.0) <= 2 * frame, "{looped:?} and {bare:?}");
    }
}

#[test]
fn adapter_serves_one_command_at_a_time() {
    let many: Vec<(u32, Request)> = (0..4).map(|volume| (volume, Request::read(Lbn(0), 8))).collect();
    let cost = |us: u32| {
        let mut engine = four(&format!("{LOOP}command_us = {us}"));
        let finished = run(&mut engine, Runs::new(&many, 0, 4_000));
        end(&finished).since_start().as_us() / 4_000.0
    };
    // Every read but the first of a drive is a cache hit, so that only the adapter limits the rate.
    let slow = cost(1_000);
    assert!((1_000.0..1_005.0).contains(&slow), "{slow}");
    assert!(cost(0) < 200.0);
}

/// The time for which each device held each bus. Asserts that a bus is held by one device at a time.
#[derive(Default)]
struct Tenures {
    finished: u64,
    last: BTreeMap<u32, Tenure>,
    held: BTreeMap<(u32, u32), Nanos>,
}

impl Observer for Tenures {
    fn finished(&mut self, _finished: &Finished) {
        self.finished += 1;
    }

    fn served(&mut self, _device: u32, command: &Completion) {
        assert_eq!(command.parts.total(), command.response());
    }

    fn held(&mut self, tenure: &Tenure) {
        if let Some(before) = self.last.insert(tenure.bus, *tenure) {
            assert!(before.to <= tenure.from, "{before:?} and {tenure:?}");
        }
        *self.held.entry((tenure.bus, tenure.device)).or_default() += tenure.to - tenure.from;
    }
}

/// The engine of a rig file.
fn engine(text: &str) -> Engine {
    let rig = Rig::parse(text, "rig.toml", &mut |name| drives::load(name));
    rig.and_then(|rig| rig.build(1)).unwrap_or_else(|error| panic!("{error}: {text}"))
}

/// Runs random reads and writes on four volumes, some of them repeatedly on the same blocks.
fn mixed(engine: &mut Engine, seed: u64) -> Tenures {
    let mut random = seeded(seed);
    let starts: Vec<(u32, Request)> = (0..12)
        .map(|run| {
            let (lbn, sectors) = (Lbn(random.random_range(0..400_000)), random.random_range(1..300));
            let write = random.random_bool(0.4);
            (run % 4, if write { Request::write(lbn, sectors) } else { Request::read(lbn, sectors) })
        })
        .collect();
    let mut tenures = Tenures::default();
    let step = random.random_range(0..500);
    engine.run_observed(&mut Runs::new(&starts, step, 600), &mut tenures);
    tenures
}

#[test]
fn exclusive_bus_is_held_by_one_device_at_a_time() {
    let presets = ["hp-c2247a", "dec-rz26", "atlas-10k", "exos-x18", "cheetah-9lp"];
    for (seed, preset) in presets.into_iter().enumerate() {
        for bus in ["arbitration_us = 2.4", "arbitration = \"priority\"", "read_us_per_sector = 100.0"] {
            for over in ["", "bus.never_disconnects = true", "bus.holds_for_reads = true"] {
                let drives = format!("[drive]\npreset = \"{preset}\"\ncount = 4\n{over}");
                let mut engine = engine(&format!("{drives}\n[bus]\nsharing = \"exclusive\"\n{bus}"));
                let tenures = mixed(&mut engine, seed as u64);
                assert_eq!(tenures.finished, 600, "{preset}, {bus}, {over}");
                let held: u64 = tenures.held.values().map(|time| time.0).sum();
                let reported: Vec<u64> = engine.link_usage().iter().map(|link| link.busy.0).collect();
                assert_eq!((vec![held], tenures.held.len()), (reported, 4), "{preset}, {bus}, {over}");
                assert!(held <= engine.now().0);
            }
        }
    }
}

#[test]
fn lone_drive_on_exclusive_bus_runs_as_without_it() {
    for preset in ["atlas-10k", "exos-x18", "cheetah-9lp"] {
        let completions = |bus: &str| {
            let mut engine = engine(&format!("[drive]\npreset = \"{preset}\"\nqueue.depth = 1\n{bus}"));
            let starts = [(0, Request::read(Lbn(77), 40)), (0, Request::write(Lbn(300_000), 17))];
            run(&mut engine, Runs::new(&starts, 12_345, 200))
        };
        assert_eq!(completions("[bus]\nsharing = \"exclusive\""), completions(""), "{preset}");
    }
}

#[test]
fn drives_share_the_rate_of_an_exclusive_bus() {
    // 20 µs a sector: 25.6 MB/s.
    let bus = |sharing: &str| format!("[bus]\nsharing = \"{sharing}\"\nread_us_per_sector = 20.0\n");
    let all = [0, 1, 2, 3].map(|volume| (volume, Op::Read));
    let one = rate(&bus("exclusive"), &all[..1]);
    let four = rate(&bus("exclusive"), &all);
    assert!(four <= 25.6e6 && four > 0.9 * one, "{four} of {one}");
    let interleaved = rate(&bus("interleaved"), &all);
    assert!((interleaved / (4.0 * one) - 1.0).abs() < 0.01, "{interleaved} of {one}");
}

#[test]
fn upstream_bus_limits_the_rate_of_its_controller() {
    let rate = |mb_s: u32| {
        let drives = "[drive]\npreset = \"exos-x18\"\ncount = 4\non = \"sata\"\nbus.read_us_per_sector = 0.1";
        let pci = format!("[[bus]]\nname = \"pci\"\nsharing = \"interleaved\"\nmb_s = {mb_s}");
        let mut engine = engine(&format!(
            "{drives}\n[[bus]]\nname = \"sata\"\ncontroller = \"ahci\"\n{pci}\n[controller]\nname = \"ahci\"\non = \"pci\""
        ));
        let starts = [0, 1, 2, 3].map(|volume| (volume, Request::read(Lbn(1 << 20), 512)));
        let finished = run(&mut engine, Runs::new(&starts, 512, 4_000));
        finished.len() as f64 * 262_144.0 / end(&finished).as_secs()
    };
    let shared = rate(133);
    assert!((120e6..133e6).contains(&shared), "{shared}");
    assert!(rate(10_000) > 3.0 * shared);
}

/// Runs sequential reads of `kib` KiB over an interface. Returns bytes per second, and the share and the time for which the processor is busy.
fn interface(kind: &str, kib: u32) -> (f64, f64, Nanos) {
    let mut engine = four(&format!("[host.interface]\nkind = \"{kind}\""));
    let starts = [(0, Request::read(Lbn(1 << 20), 2 * kib))];
    let finished = run(&mut engine, Runs::new(&starts, u64::from(2 * kib), 500));
    let busy = engine.processor_usage().expect("an interface needs a processor").busy();
    let end = end(&finished).as_secs();
    (500.0 * f64::from(kib) * 1024.0 / end, busy.as_secs() / end, busy)
}

#[test]
fn pio_saturates_the_processor_and_dma_barely_uses_it() {
    for (kind, mb_s) in [("pio-0", 3.34), ("pio-3", 11.12), ("pio-4", 16.67)] {
        let (rate, share, _) = interface(kind, 256);
        assert!(rate < mb_s * 1e6 && rate > 0.8 * mb_s * 1e6, "{kind}: {rate}");
        assert!(share > 0.97, "{kind}: {share}");
    }
    for (kind, mb_s) in [("multiword-dma-2", 16.67), ("ultra-dma-2", 33.34), ("ultra-wide-scsi", 40.01)] {
        let (rate, share, busy) = interface(kind, 256);
        assert!(rate < mb_s * 1e6 && rate > 0.95 * mb_s * 1e6, "{kind}: {rate}");
        assert!(share < 0.01, "{kind}: {share}");
        // A request costs one command and one interrupt, independent of its size.
        assert_eq!((busy, interface(kind, 16).2), (Nanos(500 * 15_000), Nanos(500 * 15_000)), "{kind}");
    }
}

#[test]
fn pio_drives_share_one_processor_and_dma_drives_scale() {
    let all = [0, 1, 2, 3].map(|volume| (volume, Op::Read));
    let host = "[host.interface]\nkind = \"pio-4\"";
    let (one, four) = (rate(host, &all[..1]), rate(host, &all));
    assert!(four < 16.7e6 && four < 1.05 * one, "{four} of {one}");
    let host = "[host.interface]\nkind = \"ultra-dma-2\"";
    let (one, four) = (rate(host, &all[..1]), rate(host, &all));
    assert!(four > 3.9 * one, "{four} of {one}");
}
