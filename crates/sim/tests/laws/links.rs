//! What drives share on their way to the host: it carries no more than it can, and it carries everything.

use headstack_model::{Lbn, Nanos, Op, Request, drives};
use headstack_sim::{Engine, Finished, Rig};
use headstack_workload::{Issue, Load, Poll};

/// Runs of requests, one on each of some volumes, each with one request outstanding.
struct Runs {
    next: Vec<(u32, Request)>,
    /// Blocks from one request of a run to the next.
    step: u64,
    /// Which runs may issue.
    ready: Vec<usize>,
    left: u64,
}

impl Runs {
    fn new(starts: &[(u32, Request)], step: u64, requests: u64) -> Runs {
        Runs { next: starts.to_vec(), step, ready: (0..starts.len()).collect(), left: requests }
    }
}

impl Load for Runs {
    fn poll(&mut self, _now: Nanos) -> Poll {
        if self.left == 0 {
            return Poll::Done;
        }
        let Some(run) = self.ready.pop() else { return Poll::Waiting };
        self.left -= 1;
        let (volume, request) = self.next[run];
        self.next[run].1.lbn = request.lbn + self.step;
        Poll::Issue(Issue::new(volume, request, run as u64))
    }

    fn handle_completion(&mut self, _now: Nanos, id: u64) {
        self.ready.push(id as usize);
    }
}

/// An engine of four fast disks on what `bus` describes.
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
        assert!(link.busy <= engine.now(), "{link:?} in {}", engine.now());
    }
    finished
}

/// Sequential runs of 64 KiB on these volumes; bytes a second over all of them.
fn rate(bus: &str, volumes: &[(u32, Op)]) -> f64 {
    let start = |(volume, op): &(u32, Op)| (*volume, Request { op: *op, ..Request::read(Lbn(1 << 20), 128) });
    let starts: Vec<(u32, Request)> = volumes.iter().map(start).collect();
    let mut engine = four(bus);
    let finished = run(&mut engine, Runs::new(&starts, 128, 2_000 * volumes.len() as u64));
    finished.len() as f64 * 65_536.0 / end(&finished).as_secs()
}

/// When the last request came back: drives may read ahead beyond that.
fn end(finished: &[Finished]) -> Nanos {
    finished.last().expect("something was asked").completion.completed
}

const LOOP: &str = "[bus]\nkind = \"ssa-loop\"\n";

#[test]
fn does_a_loop_with_any_one_link_cut_complete_everything() {
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
fn do_disjoint_arcs_of_a_loop_carry_as_much_each_as_one_alone() {
    let (read, write) = (Op::Read, Op::Write);
    let one = rate(LOOP, &[(0, read)]);
    // The link is the bottleneck: requests of 64 KiB and what the drive needs between them.
    assert!((14e6..20e6).contains(&one), "{one}");
    let both = rate(LOOP, &[(0, read), (3, read)]);
    assert!((both / one - 2.0).abs() < 0.01, "{both} of {one}");
    let far = rate(LOOP, &[(1, read), (2, read)]);
    assert!((far / one - 2.0).abs() < 0.01, "{far} of {one}");
    // To and from the adapter are lines of their own.
    let write_alone = rate(LOOP, &[(0, write)]);
    let opposite = rate(&format!("{LOOP}cut_links = [4]"), &[(0, read), (1, write)]);
    assert!((opposite / (one + write_alone) - 1.0).abs() < 0.03, "{opposite} of {one} and {write_alone}");
}

#[test]
fn does_a_cut_loop_carry_what_one_link_can() {
    let all = [0, 1, 2, 3].map(|volume| (volume, Op::Read));
    let whole = rate(LOOP, &all);
    let cut = rate(&format!("{LOOP}cut_links = [4]"), &all);
    assert!((39e6..=40e6).contains(&whole), "{whole}");
    assert!((19.5e6..=20e6).contains(&cut), "{cut}");
}

#[test]
fn does_a_loop_hide_its_transfer_behind_the_media_but_for_the_hops() {
    // Media at a tenth of the link's rate: only the last frame's way is left once they are done.
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
fn do_an_adapters_commands_wait_for_each_other() {
    let many: Vec<(u32, Request)> = (0..4).map(|volume| (volume, Request::read(Lbn(0), 8))).collect();
    let cost = |us: u32| {
        let mut engine = four(&format!("{LOOP}command_us = {us}"));
        let finished = run(&mut engine, Runs::new(&many, 0, 4_000));
        end(&finished).as_us() / 4_000.0
    };
    // Every read but the first is a hit: with a slow adapter there is nothing else to wait for.
    let slow = cost(1_000);
    assert!((1_000.0..1_005.0).contains(&slow), "{slow}");
    assert!(cost(0) < 200.0);
}
