//! Arrays whose members die during a run: they continue like arrays that began without them, as far as their redundancy allows.

use crate::arrays::{closed, engine, rebuilt, shape};
use crate::support::{assert_close, mean, small};
use headstack_model::{Instant, Nanos, Op};
use headstack_policy::stripe::{Array, Organisation, ReadChoice, Shape, WriteOrder};
use headstack_sim::{Completion, Engine, Fault, Finished, Observer, Outcome};
use headstack_workload::{Closed, Load, Pattern, Region, Shape as LoadShape};
use std::collections::BTreeSet;

const REDUNDANT: [Organisation; 5] = [
    Organisation::Mirroring,
    Organisation::ParityDrive,
    Organisation::Raid5,
    Organisation::Raid6,
    Organisation::ChainedDeclustering,
];

fn kill(engine: &mut Engine, device: usize, from_ms: f64) {
    let (from, timeout) = (Instant::from_ms(from_ms), Nanos::from_ms(2.0));
    engine.inject(device, Fault::Dead { from, timeout }).expect("any disk can die");
}

/// Finished requests, and the commands of each device that a dead disk ended.
#[derive(Default)]
struct Seen {
    all: Vec<Finished>,
    dead: Vec<(u32, Completion)>,
    /// Accesses of each device after a dead disk first ended a command of it.
    after: Vec<u32>,
}

impl Observer for Seen {
    fn finished(&mut self, finished: &Finished) {
        let completion = &finished.completion;
        assert_eq!(completion.parts.total(), completion.response(), "{finished:?}");
        self.all.push(*finished);
    }

    fn served(&mut self, device: u32, command: &Completion) {
        assert_eq!(command.parts.total(), command.response(), "{device}: {command:?}");
        if self.dead.iter().any(|(other, _)| *other == device) {
            self.after.push(device);
        }
        if command.outcome == Outcome::Dead {
            self.dead.push((device, *command));
        }
    }
}

/// Runs a load, each of whose requests must complete once.
fn run(engine: &mut Engine, load: &mut dyn Load, requests: usize) -> Seen {
    let mut seen = Seen::default();
    engine.run_observed(load, &mut seen);
    let ids: BTreeSet<u64> = seen.all.iter().map(|finished| finished.id).collect();
    assert_eq!((ids.len(), seen.all.len()), (requests, requests), "each request completes once");
    for device in 0..engine.devices() {
        assert_eq!(engine.device(device).outstanding(), 0);
    }
    seen
}

/// Reads and writes that cross several stripe units.
fn mixed(sectors: u64) -> Closed {
    let region = Region::whole(sectors);
    let shape = LoadShape { region, pattern: Pattern::Random, sectors: 40, alignment: 1, read_share: 0.5 };
    Closed::new(shape, 6, 300, 3).expect("the load fits")
}

fn is_done(finished: &Finished) -> bool {
    finished.completion.outcome == Outcome::Done
}

#[test]
fn every_redundant_array_survives_every_member_at_every_moment() {
    for (rig, organisation) in small().iter().flat_map(|rig| REDUNDANT.map(|one| (rig.clone(), one))) {
        for (member, moment) in (0..4).flat_map(|member| [0.0, 37.0, 900.0].map(|moment| (member, moment))) {
            for (spares, write_order) in [(0, WriteOrder::Together), (1, WriteOrder::DataFirst)] {
                let shape = Shape { spares, write_order, ..shape(&rig, organisation, 4, 24) };
                let (mut engine, sectors) = engine(&rig, shape);
                kill(&mut engine, member, moment);
                let seen = run(&mut engine, &mut mixed(sectors), 300);
                let what = format!("{organisation} on {} without {member} from {moment} ms", rig.name());
                assert!(seen.all.iter().all(is_done), "{what}");
                assert!(!seen.dead.is_empty(), "{what}: the death is noticed");
                // Six requests are in progress, each of which has at most two commands of the member.
                assert!(seen.after.len() <= 12, "{what}: {} commands after the death", seen.after.len());
                let (done, all) = rebuilt(&engine);
                assert_eq!((done > 0, all > 0), (spares == 1, spares == 1), "{what}: {done} of {all}");
            }
        }
    }
}

#[test]
fn requests_end_dead_exactly_where_nothing_replaces_the_dead_members() {
    use Organisation::{Concatenation, Mirroring, Raid5, Raid6, Striping};
    let rig = &small()[0];
    // The members that die, and those whose blocks are lost by it.
    let cases: [(Organisation, &[u32], &[u32]); 8] = [
        (Concatenation, &[1], &[1]),
        (Striping, &[3], &[3]),
        (Raid5, &[1, 2], &[1, 2]),
        (Raid5, &[0, 1, 2], &[0, 1, 2]),
        (Raid6, &[1, 2], &[]),
        (Raid6, &[0, 1, 3], &[0, 1, 3]),
        (Mirroring, &[0, 1], &[]),
        (Mirroring, &[0, 2], &[0]),
    ];
    for (organisation, dead, lost) in cases {
        let shape = shape(rig, organisation, 4, 24);
        let map = Array::new(shape.clone()).expect("the shape is good");
        let (mut engine, sectors) = engine(rig, shape);
        dead.iter().for_each(|member| kill(&mut engine, *member as usize, 0.0));
        let seen = run(&mut engine, &mut closed(sectors, 3, 1.0, 400), 400);
        for finished in &seen.all {
            let home = map.locate(finished.completion.request.lbn).0;
            let expected = if lost.contains(&home) { Outcome::Dead } else { Outcome::Done };
            assert_eq!(
                finished.completion.outcome, expected,
                "{organisation} without {dead:?}: {finished:?}"
            );
        }
    }
}

#[test]
fn array_performs_after_a_death_like_one_that_began_degraded() {
    let (rig, moment) = (&small()[0], 3000.0);
    for (organisation, read_share) in REDUNDANT.iter().flat_map(|one| [(*one, 1.0), (*one, 0.5)]) {
        let whole = Shape { read_choice: ReadChoice::ShortestQueue, ..shape(rig, organisation, 4, 24) };
        let response = |failed: &[u32], dies: Option<usize>, from_ms: f64| {
            let (mut engine, sectors) = engine(rig, Shape { failed: failed.to_vec(), ..whole.clone() });
            dies.iter().for_each(|member| kill(&mut engine, *member, moment));
            let seen = run(&mut engine, &mut closed(sectors, 4, read_share, 4000), 4000);
            let later = seen.all.iter().filter(|one| one.completion.submitted > Instant::from_ms(from_ms));
            let times: Vec<f64> = later.map(|one| one.completion.response().as_ms()).collect();
            assert!(times.len() > 2500, "{} requests remain", times.len());
            mean(&times)
        };
        let degraded = response(&[2], None, 0.0);
        let died = response(&[], Some(2), moment + 300.0);
        assert_close(&format!("{organisation} at {read_share}"), died, degraded, 0.04 * degraded);
        if read_share == 1.0 {
            let intact = response(&[], None, 0.0);
            assert!(
                died > 1.02 * intact || organisation == Organisation::ParityDrive,
                "{organisation}: {died} and {intact} ms"
            );
        }
    }
}

#[test]
fn spare_is_rebuilt_from_the_death_on_and_then_a_second_member_may_die() {
    let rig = &small()[0];
    for organisation in REDUNDANT {
        let (mut engine, sectors) = engine(rig, Shape { spares: 1, ..shape(rig, organisation, 4, 40) });
        run(&mut engine, &mut closed(sectors, 2, 0.5, 100), 100);
        assert_eq!(rebuilt(&engine), (0, 0), "{organisation}: nothing is to be rebuilt");
        let now = engine.now().as_secs() * 1000.0;
        kill(&mut engine, 1, now);
        run(&mut engine, &mut closed(sectors, 2, 0.5, 8000), 8000);
        let (done, all) = rebuilt(&engine);
        assert!(done == all && all > 0, "{organisation}: {done} of {all}");
        let reads = |engine: &Engine| engine.device(4).activity().reads.iter().sum::<u64>();
        let before = reads(&engine);
        let now = engine.now().as_secs() * 1000.0;
        kill(&mut engine, 2, now);
        let seen = run(&mut engine, &mut closed(sectors, 2, 0.5, 400), 400);
        assert!(seen.all.iter().all(is_done), "{organisation}");
        assert!(reads(&engine) > before, "{organisation}: the spare is read");
    }
}

#[test]
fn spare_that_dies_is_replaced_by_the_next_one() {
    let rig = &small()[0];
    for spares in [1, 2] {
        let (mut engine, sectors) = engine(rig, Shape { spares, ..shape(rig, Organisation::Raid5, 4, 40) });
        kill(&mut engine, 3, 10.0);
        kill(&mut engine, 4, 200.0);
        let seen = run(&mut engine, &mut closed(sectors, 2, 0.5, 8000), 8000);
        assert!(seen.all.iter().all(is_done));
        assert!(seen.dead.iter().any(|(device, dead)| *device == 4 && dead.request.op == Op::Write));
        let (done, all) = rebuilt(&engine);
        assert_eq!((done == all, all > 0), (true, spares == 2), "{done} of {all}");
    }
}

#[test]
fn rebuild_whose_source_dies_ends_without_the_lost_blocks() {
    let rig = &small()[0];
    let (mut engine, sectors) = engine(rig, Shape { spares: 1, ..shape(rig, Organisation::Raid5, 4, 40) });
    kill(&mut engine, 0, 10.0);
    kill(&mut engine, 1, 300.0);
    let seen = run(&mut engine, &mut closed(sectors, 2, 1.0, 6000), 6000);
    let (done, all) = rebuilt(&engine);
    assert!(done > 0 && done < all, "{done} of {all}");
    let dead = seen.all.iter().filter(|one| one.completion.outcome == Outcome::Dead).count();
    assert!(dead > 1500 && dead < 4500, "{dead} of 6000 need a dead member");
}
