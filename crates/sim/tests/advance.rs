//! An engine that is advanced step by step, by any steps, completes the same requests at the same times as one that runs freely.

use headstack_model::{Instant, Lbn, Nanos, Request, drives};
use headstack_sim::rig::shipped;
use headstack_sim::{Completion, Engine, Fault, Finished, Observer, Outcome, Rig};
use headstack_workload::{Inbox, Issue, Load, Poll, VolumeInfo};
use proptest::prelude::*;
use proptest::sample::select;
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;

/// Requests of all kinds to all volumes: `open` of them at random times, `closed` of them with at most three outstanding.
struct Asks {
    volumes: Vec<VolumeInfo>,
    random: Pcg64Mcg,
    due: Instant,
    open: u32,
    closed: u32,
    room: u32,
    issued: u64,
}

impl Asks {
    fn new(volumes: Vec<VolumeInfo>, seed: u64, open: u32, closed: u32) -> Asks {
        let random = Pcg64Mcg::seed_from_u64(seed);
        Asks { volumes, random, due: Instant::ZERO, open, closed, room: 3, issued: 0 }
    }

    fn draw(&mut self) -> Issue {
        let random = &mut self.random;
        let volume = random.random_range(0..self.volumes.len());
        let sectors = *[1, 8, 8, 64, 300].get(random.random_range(0..5)).expect("there are five");
        // Often near the start, so that caches and read-ahead meet the same blocks again.
        let last = self.volumes[volume].sectors - u64::from(sectors);
        let last = if random.random_bool(0.6) { last.min(5_000) } else { last };
        let lbn = Lbn(random.random_range(0..=last));
        let request = match random.random_range(0..12) {
            0 => Request::flush(),
            1..6 => Request { fua: random.random_bool(0.1), ..Request::write(lbn, sectors) },
            _ => Request::read(lbn, sectors),
        };
        self.issued += 1;
        let direct = random.random_bool(0.2);
        // The open part makes odd numbers of these.
        Issue { direct, ..Issue::new(volume as u32, request, 2 * self.issued) }
    }
}

impl Load for Asks {
    fn poll(&mut self, now: Instant) -> Poll {
        if self.closed > 0 && self.room > 0 {
            (self.closed, self.room) = (self.closed - 1, self.room - 1);
            return Poll::Issue(self.draw());
        }
        if self.open > 0 && self.due <= now {
            self.open -= 1;
            self.due += Nanos(self.random.random_range(0..30_000_000));
            let issue = self.draw();
            return Poll::Issue(Issue { id: issue.id + 1, ..issue });
        }
        match (self.open, self.closed) {
            (0, 0) => Poll::Done,
            (0, _) => Poll::Waiting,
            _ => Poll::Later(self.due),
        }
    }

    fn handle_completion(&mut self, _now: Instant, id: u64) {
        self.room += u32::from(id.is_multiple_of(2));
    }
}

/// Everything that comes back.
#[derive(Default)]
struct Seen {
    finished: Vec<Finished>,
    served: Vec<(u32, Completion)>,
}

impl Observer for Seen {
    fn finished(&mut self, finished: &Finished) {
        self.finished.push(*finished);
    }

    fn served(&mut self, device: u32, command: &Completion) {
        self.served.push((device, *command));
    }
}

/// Advances to a time and checks what holds of any such step.
fn advance(engine: &mut Engine, until: Instant, load: &mut dyn Load, seen: &mut Seen) {
    let (before, known) = (engine.now(), seen.finished.len());
    engine.advance(until, load, seen);
    assert_eq!(engine.now(), until);
    assert!(engine.next_event().is_none_or(|next| next > until), "all that is due has been done");
    for one in &seen.finished[known..] {
        let completed = one.completion.completed;
        assert!(before <= completed && completed <= until, "{completed} between {before} and {until}");
    }
}

/// Steps of a clock from far below to far above what a request takes.
fn step(random: &mut Pcg64Mcg) -> Nanos {
    let most =
        *[1_000, 300_000, 20_000_000, 400_000_000].get(random.random_range(0..4)).expect("there are four");
    Nanos(random.random_range(0..most))
}

/// The rigs with something between load and disks that keeps data.
const BEHIND: [&str; 7] =
    ["exos-2x18-sata", "mirror", "raid5", "smart-controller", "stream-node", "workstation", "busy"];

/// What a page cache, an array that fills a spare, and a bus shared by both would do by themselves.
const BUSY: &str = "[[drive]]\npreset = \"hp-c3323a\"\ncount = 3\nvolume = \"d\"\n\
                    [[drive]]\npreset = \"hp-c3323a\"\nvolume = \"spare\"\n\
                    [bus]\nsharing = \"exclusive\"\n\
                    [[array]]\nname = \"a\"\norganisation = \"raid-5\"\ndrives = [\"d\"]\n\
                    stripe_unit_sectors = 16\nfailed = [\"d1\"]\nspares = [\"spare\"]\n\
                    [host.page_cache]\nmemory_mb = 2\n";

fn names() -> Vec<&'static str> {
    let rigs = shipped::all().iter().map(|(name, _)| *name);
    rigs.chain(["st2000dm006", "cheetah-9lp", "busy"]).collect()
}

fn rig(name: &str) -> Rig {
    let rig = match name {
        "busy" => Rig::parse(BUSY, "busy.toml", &mut |name| drives::load(name)),
        _ => shipped::load(name),
    };
    rig.unwrap_or_else(|error| panic!("{name}: {error}"))
}

#[test]
fn every_request_completes_despite_a_drive_failure() {
    for name in names() {
        for seed in 0..3 {
            let rig = rig(name);
            let mut engine = rig.build(seed).unwrap_or_else(|error| panic!("{error}"));
            let from = Instant::from_ms(50.0 + 17.0 * seed as f64);
            let dies = Fault::Dead { from, timeout: Nanos::from_ms(10.0 * seed as f64) };
            engine.inject(0, dies).expect("any disk can die");
            let bad = Fault::Medium { start: Lbn(100), end: Lbn(900), turns: None, stays: false };
            engine.inject(engine.devices() - 1, bad).expect("the disk has these blocks");
            let (mut load, mut seen) = (Asks::new(rig.volumes(), seed, 60, 140), Seen::default());
            engine.run_observed(&mut load, &mut seen);
            assert_eq!(seen.finished.len(), 200, "{name}: each comes back once");
            let of_first = seen.served.iter().filter(|(device, _)| *device == 0);
            let late =
                of_first.filter(|(_, command)| command.completed > from + Nanos::from_ms(10.0 * seed as f64));
            for (_, command) in late {
                assert_eq!(command.outcome, Outcome::Dead, "{name}: {command:?}");
            }
        }
    }
}

#[test]
fn media_writes_are_reported_for_plain_drives_only() {
    for name in names() {
        let (rig, expected) = (rig(name), !BEHIND.contains(&name));
        let mut engine = rig.build(1).unwrap_or_else(|error| panic!("{error}"));
        engine.track_media();
        let (mut load, mut seen) = (Asks::new(rig.volumes(), 1, 60, 200), Seen::default());
        let mut random = Pcg64Mcg::seed_from_u64(1);
        let mut reported = vec![0; rig.volumes().len()];
        let mut collect = |engine: &mut Engine| {
            for (volume, reported) in reported.iter_mut().enumerate() {
                while let Some(written) = engine.poll_media_write(volume) {
                    *reported += written.end - written.start;
                }
            }
        };
        while seen.finished.len() < 200 {
            let until = engine.now() + step(&mut random);
            advance(&mut engine, until, &mut load, &mut seen);
            collect(&mut engine);
        }
        let now = engine.now();
        engine.cut_power(now);
        collect(&mut engine);
        assert_eq!(engine.next_event(), None, "{name}: nothing happens without power");
        let before = seen.finished.len();
        advance(&mut engine, now + Nanos::from_secs(9), &mut load, &mut seen);
        assert_eq!(seen.finished.len(), before, "{name}");
        for (volume, reported) in reported.into_iter().enumerate() {
            assert_eq!(engine.tells_media(volume), expected, "{name}");
            assert_eq!(reported > 0, expected, "{name}: {reported} sectors of volume {volume}");
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(150) })]

    #[test]
    fn stepped_engine_completes_as_a_free_running_one(
        name in select(names()),
        seed in any::<u64>(),
        open in 0u32..40,
        closed in 1u32..60,
    ) {
        let rig = rig(name);
        let build = || rig.build(seed).unwrap_or_else(|error| panic!("{error}"));
        let asks = || Asks::new(rig.volumes(), seed, open, closed);
        let mut by_itself = Seen::default();
        build().run_observed(&mut asks(), &mut by_itself);
        prop_assert_eq!(by_itself.finished.len() as u32, open + closed, "all have come back");

        let mut random = Pcg64Mcg::seed_from_u64(seed);
        let (mut engine, mut load, mut seen) = (build(), asks(), Seen::default());
        while seen.finished.len() < by_itself.finished.len() {
            let until = engine.now() + step(&mut random);
            advance(&mut engine, until, &mut load, &mut seen);
        }
        prop_assert_eq!(&seen.finished, &by_itself.finished);
        // A run stops at the last completion. The stepped engine also serves background commands that end later.
        let last = by_itself.finished.iter().map(|one| one.completion.completed).max();
        let until_last = |seen: &Seen| -> Vec<_> {
            seen.served.iter().filter(|(_, command)| Some(command.completed) <= last).copied().collect()
        };
        prop_assert_eq!(until_last(&seen), until_last(&by_itself));

        // Background commands are the same too, whether the engine advances past all of them at once or from event to event.
        let (end, mut other) = (engine.now() + Nanos::from_secs(2), build());
        let (mut load, mut seen_too) = (asks(), Seen::default());
        advance(&mut engine, end, &mut Inbox::default(), &mut seen);
        advance(&mut other, Instant(end.0 / 3), &mut load, &mut seen_too);
        while let Some(next) = other.next_event().filter(|next| *next <= end) {
            advance(&mut other, next, &mut load, &mut seen_too);
        }
        advance(&mut other, end, &mut load, &mut seen_too);
        prop_assert_eq!(&seen.finished, &seen_too.finished);
        prop_assert_eq!(&seen.served, &seen_too.served);
        for device in 0..engine.devices() {
            prop_assert_eq!(engine.device(device).activity(), other.device(device).activity());
        }
    }

    #[test]
    fn external_request_is_served_like_a_scheduled_one(
        name in select(names()),
        seed in any::<u64>(),
        gaps in prop::collection::vec(prop_oneof![0u64..100_000, 0u64..40_000_000], 1..60),
    ) {
        let rig = rig(name);
        let build = || rig.build(seed).unwrap_or_else(|error| panic!("{error}"));
        let mut asks = Asks::new(rig.volumes(), seed, 0, 0);
        let mut at = Instant::ZERO;
        let script: Vec<(Instant, Issue)> = gaps.iter().map(|gap| {
            at += Nanos(*gap + 1);
            (at, asks.draw())
        }).collect();

        let (mut planned, mut seen) = (Inbox::default(), Seen::default());
        script.iter().for_each(|(at, issue)| planned.put(*at, *issue));
        build().run_observed(&mut planned, &mut seen);

        let mut random = Pcg64Mcg::seed_from_u64(seed);
        let (mut engine, mut inbox, mut outside) = (build(), Inbox::default(), Seen::default());
        for (at, issue) in script {
            // Until the next request, the engine is advanced some random steps, or not at all, so that it is called late.
            while random.random_bool(0.7) {
                let until = (engine.now() + step(&mut random)).min(Instant(at.0 - 1));
                advance(&mut engine, until, &mut inbox, &mut outside);
            }
            inbox.put(at, issue);
            advance(&mut engine, at, &mut inbox, &mut outside);
        }
        while outside.finished.len() < seen.finished.len() {
            let until = engine.now() + step(&mut random);
            advance(&mut engine, until, &mut inbox, &mut outside);
        }
        prop_assert_eq!(outside.finished, seen.finished);
    }
}
