//! Arrays: a request completes with its slowest part, and redundancy costs the number of accesses that theory predicts.

use crate::support::{Rig, all_plain, any_lbn, seeded, shipped, small};
use headstack_model::{Instant, Lbn, Op, Request};
use headstack_policy::stripe::{Array, Organisation, ReadChoice, Shape, Unit, WriteOrder};
use headstack_sim::{ArrayLayer, ArrayVolume, Completion, Engine, Finished, HostSpec, Observer, Outcome};
use headstack_workload::{Closed, Issue, Load, Pattern, Poll, Region, Shape as LoadShape};

/// An array of drives of one kind.
pub(crate) fn shape(rig: &Rig, organisation: Organisation, members: usize, unit: u64) -> Shape {
    let one = organisation == Organisation::Mirroring && members == 2;
    let whole = one || organisation == Organisation::Concatenation;
    let unit = if whole { Unit::Member } else { Unit::Sectors(unit) };
    Shape { seed: 5, ..Shape::new(organisation, vec![rig.sectors(); members], unit) }
}

/// An engine with that array, and the number of sectors of its volume.
pub(crate) fn engine(rig: &Rig, shape: Shape) -> (Engine, u64) {
    let devices = shape.members.len() + shape.spares;
    let array = Array::new(shape).unwrap_or_else(|error| panic!("{error}"));
    let sectors = array.sectors();
    let volume = ArrayVolume::new(array, (0..devices as u32).collect());
    let devices = (0..devices).map(|_| rig.device()).collect();
    let engine = Engine::with_arrays(devices, vec![volume], &HostSpec::default());
    (engine.unwrap_or_else(|error| panic!("{error}")), sectors)
}

/// Issues each request when the previous one is done.
struct OneByOne {
    requests: Vec<Request>,
    next: usize,
    waits: bool,
}

impl Load for OneByOne {
    fn poll(&mut self, _now: Instant) -> Poll {
        match self.requests.get(self.next) {
            _ if self.waits => Poll::Waiting,
            None => Poll::Done,
            Some(request) => {
                (self.next, self.waits) = (self.next + 1, true);
                Poll::Issue(Issue::new(0, *request, self.next as u64))
            }
        }
    }

    fn handle_completion(&mut self, _now: Instant, _id: u64) {
        self.waits = false;
    }
}

/// Each finished request, and the commands that served it.
#[derive(Default)]
struct Seen {
    commands: Vec<(u32, Completion)>,
    all: Vec<(Finished, Vec<(u32, Completion)>)>,
}

impl Observer for Seen {
    fn finished(&mut self, finished: &Finished) {
        assert_eq!(finished.completion.outcome, Outcome::Done);
        self.all.push((*finished, std::mem::take(&mut self.commands)));
    }

    fn served(&mut self, device: u32, command: &Completion) {
        self.commands.push((device, *command));
    }
}

fn one_by_one(engine: &mut Engine, requests: Vec<Request>) -> Vec<(Finished, Vec<(u32, Completion)>)> {
    let mut seen = Seen::default();
    engine.run_observed(&mut OneByOne { requests, next: 0, waits: false }, &mut seen);
    seen.all
}

/// The numbers of reads and writes among these commands.
fn counts(commands: &[(u32, Completion)]) -> (usize, usize) {
    let of = |op: Op| commands.iter().filter(|(_, command)| command.request.op == op).count();
    (of(Op::Read), of(Op::Write))
}

#[test]
fn small_raid_5_write_costs_four_accesses_a_turn_apart() {
    for rig in all_plain() {
        let (mut engine, sectors) = engine(&rig, shape(&rig, Organisation::Raid5, 5, 64));
        let places = (1..40).map(|index| Request::write(Lbn(sectors / 41 * index), 1));
        for (finished, commands) in one_by_one(&mut engine, places.collect()) {
            assert_eq!(counts(&commands), (2, 2), "{}", rig.name());
            // The block that was read passes the head again one turn later, so the write cannot end earlier.
            for (device, write) in commands.iter().filter(|(_, command)| command.request.op == Op::Write) {
                let read = commands
                    .iter()
                    .find(|(other, command)| other == device && command.request.op == Op::Read);
                let read = read.expect("what is written was read");
                let between = (write.completed - read.1.completed).0 as f64;
                assert!(between > 0.99 * rig.turn(), "{}: {between} ns", rig.name());
            }
            assert!(finished.completion.response().0 as f64 > rig.turn());
        }
    }
}

#[test]
fn data_first_order_writes_data_before_parity_is_read() {
    for rig in small() {
        let eager = Shape { write_order: WriteOrder::DataFirst, ..shape(&rig, Organisation::Raid5, 5, 64) };
        let array = Array::new(eager.clone()).expect("the shape is good");
        let (mut engine, sectors) = engine(&rig, eager);
        // The read before each write moves the arms of the array to different places.
        let requests = (1..40).flat_map(|index| {
            let elsewhere = Request::read(Lbn(sectors / 41 * (index * 17 % 40)), 1);
            [elsewhere, Request::write(Lbn(sectors / 41 * index), 1)]
        });
        let mut before = 0;
        for (finished, commands) in one_by_one(&mut engine, requests.collect()) {
            if finished.completion.request.op == Op::Read {
                continue;
            }
            assert_eq!(counts(&commands), (2, 2), "{}", rig.name());
            let data = array.locate(finished.completion.request.lbn).0;
            let of = |is_data: bool, op: Op| {
                let found = commands
                    .iter()
                    .find(|(device, command)| (*device == data) == is_data && command.request.op == op);
                found.expect("each is read and written").1
            };
            let (read, parity) = (of(true, Op::Read), of(false, Op::Read));
            assert_eq!(of(true, Op::Write).submitted, read.completed);
            assert_eq!(of(false, Op::Write).submitted, read.completed.max(parity.completed));
            before += u32::from(read.completed < parity.completed);
        }
        assert!(before > 0, "{}: both are always read at the same time", rig.name());
    }
}

#[test]
fn full_row_write_costs_one_write_per_drive_and_no_read() {
    for rig in small() {
        for (organisation, members, width) in
            [(Organisation::ParityDrive, 4, 3), (Organisation::Raid5, 4, 3), (Organisation::Raid6, 5, 3)]
        {
            let (mut engine, _) = engine(&rig, shape(&rig, organisation, members, 16));
            let rows = (0..10).map(|row| Request::write(Lbn(row * 16 * width), 16 * width as u32));
            for (_, commands) in one_by_one(&mut engine, rows.collect()) {
                assert_eq!(counts(&commands), (0, members), "{organisation} on {}", rig.name());
            }
        }
    }
}

#[test]
fn degraded_read_uses_all_other_drives() {
    for rig in small() {
        let whole = shape(&rig, Organisation::Raid5, 4, 16);
        let worn = Shape { failed: vec![1], ..whole.clone() };
        let array = Array::new(whole.clone()).expect("the shape is good");
        let reads: Vec<Request> = (0..40).map(|index| Request::read(Lbn(index * 16 + 3), 4)).collect();
        let (mut engine, _) = engine(&rig, worn);
        for (finished, commands) in one_by_one(&mut engine, reads) {
            let lost = array.locate(finished.completion.request.lbn).0 == 1;
            assert_eq!(counts(&commands), (if lost { 3 } else { 1 }, 0), "{}", rig.name());
            assert!(commands.iter().all(|(device, _)| *device != 1), "the failed drive gets no command");
        }
    }
}

#[test]
fn striped_request_completes_with_its_slowest_part() {
    for rig in all_plain() {
        let (mut engine, sectors) = engine(&rig, shape(&rig, Organisation::Striping, 4, 8));
        let mut random = seeded(71);
        let requests: Vec<Request> = (0..60)
            .map(|_| Request::read(Lbn(any_lbn(&mut random, &rig, 64).0 * (sectors / rig.sectors())), 32))
            .collect();
        for (finished, commands) in one_by_one(&mut engine, requests) {
            let slowest = commands.iter().map(|(_, command)| command.completed).max();
            assert_eq!(Some(finished.completion.completed), slowest, "{}", rig.name());
            let read: u32 = commands.iter().map(|(_, command)| command.request.sectors).sum();
            assert_eq!(read, 32, "each block is read exactly once");
        }
    }
}

/// A closed load of random single blocks of a whole volume.
pub(crate) fn closed(sectors: u64, depth: u32, read_share: f64, requests: u64) -> Closed {
    let region = Region::whole(sectors);
    let shape = LoadShape { region, pattern: Pattern::Random, sectors: 1, alignment: 1, read_share };
    Closed::new(shape, depth, requests, 9).expect("the load fits")
}

fn mean_response(engine: &mut Engine, load: &mut dyn Load) -> f64 {
    let (mut sum, mut count) = (0.0, 0.0);
    engine.run(load, &mut |finished| {
        assert_eq!(finished.completion.parts.total(), finished.completion.response());
        (sum, count) = (sum + finished.completion.response().as_ms(), count + 1.0);
    });
    sum / count
}

#[test]
fn mirrored_reads_are_no_slower_than_a_single_drive() {
    for rig in shipped().iter().map(Rig::plain) {
        for (depth, choice) in [
            (1, ReadChoice::Nearest),
            (1, ReadChoice::Primary),
            (1, ReadChoice::ShortestQueue),
            (8, ReadChoice::ShortestQueue),
            (8, ReadChoice::RoundRobin),
            (8, ReadChoice::Random),
        ] {
            let load = || closed(rig.sectors(), depth, 1.0, 1500);
            let alone = mean_response(&mut Engine::new(vec![rig.device()]), &mut load());
            let mirror = Shape { read_choice: choice, ..shape(&rig, Organisation::Mirroring, 2, 0) };
            let mirrored = mean_response(&mut engine(&rig, mirror).0, &mut load());
            assert!(mirrored <= alone, "{} {choice:?} at {depth}: {mirrored} ms, alone {alone}", rig.name());
        }
    }
}

#[test]
fn every_organisation_completes_and_accounts_each_request() {
    for rig in small() {
        for organisation in [
            Organisation::Concatenation,
            Organisation::Striping,
            Organisation::Mirroring,
            Organisation::ParityDrive,
            Organisation::Raid5,
            Organisation::Raid6,
            Organisation::ChainedDeclustering,
        ] {
            let redundant = !matches!(organisation, Organisation::Concatenation | Organisation::Striping);
            let orders = [WriteOrder::Together, WriteOrder::DataFirst];
            for (failed, write_order) in
                [(vec![], orders[0]), (vec![], orders[1]), (vec![2], orders[1]), (vec![3], orders[1])]
            {
                if !failed.is_empty() && !redundant {
                    continue;
                }
                let spares = failed.len();
                let worn = Shape { failed, spares, write_order, ..shape(&rig, organisation, 4, 24) };
                let (mut engine, sectors) = engine(&rig, worn);
                let region = Region::whole(sectors);
                let shape = LoadShape {
                    region,
                    pattern: Pattern::Random,
                    sectors: 40,
                    alignment: 1,
                    read_share: 0.5,
                };
                let mut load = Closed::new(shape, 6, 400, 3).expect("the load fits");
                let mut ids = std::collections::BTreeSet::new();
                engine.run(&mut load, &mut |finished| {
                    let completion = &finished.completion;
                    assert_eq!(completion.outcome, Outcome::Done);
                    assert_eq!(completion.parts.total(), completion.response());
                    assert!(ids.insert(finished.id), "{organisation}: {} comes back twice", finished.id);
                });
                assert_eq!(ids.len(), 400, "{organisation}");
                for device in 0..engine.devices() {
                    assert_eq!(engine.device(device).outstanding(), 0, "{organisation}");
                }
            }
        }
    }
}

#[test]
fn track_aligned_array_never_crosses_a_track_boundary() {
    let text = "[drive]\npreset = \"hp-c2247a\"\ncount = 3\n[array]\norganisation = \"striping\"\ndrives = [\"disk0\", \"disk1\", \"disk2\"]\n";
    let crossing = |unit: &str| {
        let text = format!("{text}{unit}");
        let rig = headstack_sim::Rig::parse(&text, "t", &mut |name| headstack_model::drives::load(name));
        let rig = rig.unwrap_or_else(|error| panic!("{error}"));
        let volume = &rig.volumes()[0];
        let drive = rig.resolved().drive[0].spec.capacity_sectors;
        let mut engine = rig.build(1).unwrap_or_else(|error| panic!("{error}"));
        let requests = (0..300).map(|index| Request::read(Lbn((volume.sectors - 16) / 300 * index), 16));
        let seen = one_by_one(&mut engine, requests.collect());
        let geometry = &engine.device(0).drive().geometry;
        let crosses = |command: &Completion| {
            let track = |lbn: Lbn| geometry.track_at(lbn).first;
            track(command.request.lbn) != track(Lbn(command.request.end().0 - 1))
        };
        let commands = seen.iter().flat_map(|(_, commands)| commands);
        (3 * drive - volume.sectors, commands.filter(|(_, command)| crosses(command)).count())
    };
    assert_eq!(crossing("track_aligned = true"), (0, 0));
    assert!(crossing("stripe_unit_sectors = 64").1 > 20, "{:?}", crossing("stripe_unit_sectors = 64"));
}

#[test]
fn request_beyond_the_array_is_rejected() {
    let rig = &small()[0];
    let (mut engine, sectors) = engine(rig, shape(rig, Organisation::Raid5, 3, 8));
    for request in
        [Request::read(Lbn(sectors - 1), 2), Request::write(Lbn(u64::MAX), 8), Request::read(Lbn(0), 0)]
    {
        let mut outcomes = Vec::new();
        let mut load = OneByOne { requests: vec![request], next: 0, waits: false };
        engine.run(&mut load, &mut |finished| {
            outcomes.push((finished.completion.request, finished.completion.outcome))
        });
        assert_eq!(outcomes, [(request, Outcome::OutOfRange)]);
    }
}

#[test]
fn spare_is_rebuilt_at_its_rate_and_then_serves_reads() {
    let rig = &small()[0];
    let worn = Shape { failed: vec![1], spares: 1, ..shape(rig, Organisation::Raid5, 4, 40) };
    let rate = 500_000;
    let run = |rate: Option<u64>, requests: u64| {
        let array = Array::new(worn.clone()).expect("the shape is good");
        let sectors = array.sectors();
        let volume = ArrayVolume::new(array, vec![0, 1, 2, 3, 4]);
        let volume = match rate {
            Some(rate) => volume.rebuilt_at(rate),
            None => volume,
        };
        let devices = (0..5).map(|_| rig.device()).collect();
        let mut engine =
            Engine::with_arrays(devices, vec![volume], &HostSpec::default()).expect("the host is good");
        let mean = mean_response(&mut engine, &mut closed(sectors, 2, 1.0, requests));
        (engine, mean)
    };
    let (slow, slow_mean) = run(Some(rate), 1500);
    let (done, all) = rebuilt(&slow);
    let bytes = done * u64::from(rig.spec.sector_bytes);
    let allowed = rate as f64 * slow.now().as_secs();
    let step = 2048.0 * f64::from(rig.spec.sector_bytes);
    assert!(done > 0 && done < all, "{done} of {all}");
    assert!(bytes as f64 <= allowed + step && bytes as f64 > 0.95 * allowed - step, "{bytes} of {allowed}");
    let (fast, fast_mean) = run(None, 1500);
    assert!(rebuilt(&fast).0 > 2 * done, "{:?}", rebuilt(&fast));
    assert!(slow_mean < fast_mean, "{slow_mean} and {fast_mean} ms");
    // Once the spare is rebuilt, a read of one block takes one command again.
    let (whole, _) = run(None, 6000);
    assert_eq!(rebuilt(&whole).0, all);
    let commands = |engine: &Engine| -> u64 {
        (0..5).map(|device| engine.device(device).activity().reads.iter().sum::<u64>()).sum()
    };
    assert_eq!(whole.device(1).activity().reads.iter().sum::<u64>(), 0, "the failed drive is not read");
    assert!(commands(&whole) < 6000 * 3 / 2 + 3 * all / 40, "{}", commands(&whole));
}

pub(crate) fn rebuilt(engine: &Engine) -> (u64, u64) {
    engine.layer(0).map_or((0, 0), ArrayLayer::rebuilt)
}
