//! Retries, lost turns, recalibrations and partial writes of physical sectors cost whole turns. Slow periods and stalls delay their share.

use crate::support::*;
use headstack_model::spec::{LostTurns, Recalibration, Retries, SlowPeriodSpec, StallSpec};
use headstack_model::{Geometry, Instant, Lbn, Nanos, Request};
use headstack_sim::{CacheUse, Device, DeviceOptions, Fault, FaultError};

/// The number of turns by which `found` is longer than `usual`. It must be a whole number.
fn whole_turns(rig: &Rig, usual: Nanos, found: Nanos) -> u64 {
    let turns = (found.0 as f64 - usual.0 as f64) / rig.turn();
    let off = (turns - turns.round()).abs() * rig.turn();
    assert!(off <= 6.0, "{}: {usual} became {found}, {turns} turns more", rig.name());
    turns.round() as u64
}

#[test]
fn retries_add_whole_turns_at_their_probability() {
    for rig in all_plain() {
        let shaky =
            rig.with(|spec| spec.mechanics.retries = Some(Retries { probability: 0.3, turns_max: 3 }));
        let request = |index: u64| {
            let lbn = Lbn(rig.sectors() / 7 * (index % 7));
            if index.is_multiple_of(2) { Request::read(lbn, 4) } else { Request::write(lbn, 4) }
        };
        let mut counts = [0u32; 4];
        for index in 0..400 {
            let usual = serve(&mut rig.device(), Instant::ZERO, request(index)).response();
            let options = DeviceOptions { seed: index, ..DeviceOptions::default() };
            let found = serve(&mut shaky.device_with(&options), Instant::ZERO, request(index)).response();
            counts[whole_turns(&rig, usual, found) as usize] += 1;
        }
        // After each retry the next one has the same probability, up to three retries: shares 0.7, 0.21, 0.063, 0.027.
        for (count, share) in counts.iter().zip([0.7f64, 0.21, 0.063, 0.027]) {
            let deviation = (400.0 * share * (1.0 - share)).sqrt();
            assert_close(rig.name(), f64::from(*count), 400.0 * share, 4.5 * deviation);
        }
    }
}

/// The rig with lost turns that have this distribution.
fn losing(rig: &Rig, turns_shares: &[(u32, f64)]) -> Rig {
    let turns_shares = turns_shares.to_vec();
    rig.with(|spec| spec.mechanics.lost_turns = Some(LostTurns { turns_shares, from_idle_only: false }))
}

#[test]
fn lost_turns_follow_their_shares_and_count_as_retries() {
    for rig in all_plain() {
        let losing = losing(&rig, &[(1, 0.4), (3, 0.1)]);
        let mut counts = [0u32; 4];
        for seed in 0..400 {
            let request = Request::read(Lbn(1 + rig.sectors() / 401 * seed), 1);
            let usual = serve(&mut rig.device(), Instant::ZERO, request);
            let options = DeviceOptions { seed, ..DeviceOptions::default() };
            let found = serve(&mut losing.device_with(&options), Instant::ZERO, request);
            let turns = whole_turns(&rig, usual.response(), found.response());
            counts[turns as usize] += 1;
            assert_eq!(found.parts.retries, found.response() - usual.response(), "{}", rig.name());
            assert_eq!(found.parts.rotational_latency, usual.parts.rotational_latency, "{}", rig.name());
        }
        for (count, share) in counts.iter().zip([0.6f64, 0.2, 0.1, 0.1]) {
            let deviation = (400.0 * share * (1.0 - share)).sqrt();
            assert_close(rig.name(), f64::from(*count), 400.0 * share, 4.5 * deviation);
        }
    }
}

#[test]
fn sequential_access_loses_no_turn() {
    for rig in all_plain() {
        let losing = losing(&rig, &[(1, 0.49)]);
        let mut device = losing.device();
        let mut now = Instant::ZERO;
        for index in 0..100 {
            let done = serve(&mut device, now, Request::read(Lbn(8 + 4 * index), 4));
            assert!(index == 0 || done.parts.retries == Nanos::ZERO, "{}: {done:?}", rig.name());
            now = done.completed;
        }
    }
}

#[test]
fn queued_command_loses_no_turn_under_from_idle_only() {
    for rig in all_plain().into_iter().filter(|rig| rig.spec.queue.depth > 1) {
        let losing = losing(&rig, &[(1, 0.49)]).with(|spec| {
            spec.mechanics.lost_turns.as_mut().expect("this rig loses turns").from_idle_only = true;
        });
        let mut device = losing.device();
        let mut random = seeded(9);
        let (mut when_idle, mut behind) = (0, 0);
        for round in 0..200 {
            let requests = [8, 16].map(|sectors| Request::read(any_lbn(&mut random, &rig, 16), sectors));
            for done in serve_all(&mut device, Instant::from_secs(round), &requests) {
                let found = if done.request == requests[0] { &mut when_idle } else { &mut behind };
                *found += u32::from(done.parts.retries > Nanos::ZERO);
            }
        }
        assert!(when_idle > 50 && behind == 0, "{}: {when_idle} and {behind} of 200", rig.name());
    }
}

#[test]
fn lost_turns_give_modern_drives_the_measured_read_tail() {
    for rig in shipped().into_iter().filter(|rig| rig.spec.mechanics.lost_turns.is_some()) {
        let mut device = rig.device();
        let mut random = seeded(8);
        let mut now = Instant::ZERO;
        let mut times: Vec<Nanos> = (0..40_000)
            .map(|_| {
                let done = serve(&mut device, now, Request::read(any_lbn(&mut random, &rig, 8), 8));
                now = done.completed;
                done.response()
            })
            .collect();
        times.sort_unstable();
        let quantile = |share: f64| times[(share * times.len() as f64) as usize].as_ms();
        // Bounds from measurements of three drives; the ST2000DM006 has separate ones.
        let most = if rig.name() == "st2000dm006" { [45.0, 110.0] } else { [33.0, 65.0] };
        assert!((26.0..most[0]).contains(&quantile(0.995)), "{}: {}", rig.name(), quantile(0.995));
        assert!((50.0..most[1]).contains(&quantile(0.999)), "{}: {}", rig.name(), quantile(0.999));
        // Nine in ten reads lose no turn and take at most the longest seek and a turn.
        assert!(quantile(0.9) < 25.0, "{}: {}", rig.name(), quantile(0.9));
    }
}

#[test]
fn recalibration_delays_an_access_by_at_most_its_duration() {
    for rig in all_plain() {
        let duration_ms = 30.0;
        let recalibration = Some(Recalibration { interval_s: 1.0, duration_ms });
        let away = rig.with(|spec| spec.mechanics.recalibration = recalibration);
        let most = (duration_ms * 1e6 / rig.turn()).ceil() as u64;
        let mut held = 0;
        for seed in 0..300 {
            let options = DeviceOptions { seed, ..DeviceOptions::default() };
            let request = Request::read(Lbn(rig.sectors() / 2), 1);
            let at = Instant::from_ms(500.0);
            let usual = serve(&mut rig.device(), at, request).response();
            let found = serve(&mut away.device_with(&options), at, request).response();
            // The sector passes the head once a turn, so the delay is a whole number of turns.
            let turns = whole_turns(&rig, usual, found);
            assert!(turns <= most, "{}: {turns} turns", rig.name());
            held += u32::from(turns > 0);
        }
        // The first recalibration begins at a random time in its interval of 1 s, so that about 3 % of the reads meet its 30 ms.
        assert!((1..40).contains(&held), "{}: {held} of 300 held up", rig.name());
    }
}

#[test]
fn recalibrations_cost_their_share_of_throughput() {
    for rig in all_plain() {
        let recalibration = Some(Recalibration { interval_s: 0.2, duration_ms: 20.0 });
        let away = rig.with(|spec| spec.mechanics.recalibration = recalibration);
        let rate = |rig: &Rig| closed_rate(rig.device(), random_blocks(rig), 1, 6000);
        // The recalibrations take a tenth of the time.
        assert_close(rig.name(), rate(&away) / rate(&rig), 0.9, 0.02);
    }
}

#[test]
fn partial_physical_sector_write_costs_one_more_turn() {
    for rig in all_plain() {
        let large = rig.with(|spec| spec.physical_sector_bytes = 8 * spec.sector_bytes);
        for lbn in rig.spread(60) {
            let aligned = Lbn(lbn.0 / 8 * 8);
            for (lbn, sectors, more) in
                [(aligned, 8, 0), (aligned, 16, 0), (aligned + 1, 8, 1), (aligned, 7, 1), (aligned + 7, 1, 1)]
            {
                if lbn.0 + u64::from(sectors) > rig.sectors() {
                    continue;
                }
                let write = Request::write(lbn, sectors);
                let usual = serve(&mut rig.device(), Instant::ZERO, write).response();
                let found = serve(&mut large.device(), Instant::ZERO, write).response();
                assert_eq!(whole_turns(&rig, usual, found), more, "{}: {write:?}", rig.name());
                let read = Request::read(lbn, sectors);
                let usual = serve(&mut rig.device(), Instant::ZERO, read);
                assert_eq!(serve(&mut large.device(), Instant::ZERO, read), usual, "reads cost nothing more");
            }
        }
    }
}

/// The completion times of consecutive random reads of 4 KiB.
fn completions(device: &mut Device, rig: &Rig, count: usize) -> Vec<Instant> {
    let (mut random, mut now) = (seeded(11), Instant::ZERO);
    let mut one = || {
        now = serve(device, now, Request::read(any_lbn(&mut random, rig, 8), 8)).completed;
        now
    };
    (0..count).map(|_| one()).collect()
}

#[test]
fn slow_period_delays_its_share_of_reads_and_nothing_before_it() {
    for rig in all_plain() {
        let usual = completions(&mut rig.device(), &rig, 400);
        let from = usual[99];
        let mut slow = rig.device();
        let spec = SlowPeriodSpec {
            from_s: from.as_secs(),
            share: 0.25,
            delay_ms: Some(100.0),
            ..SlowPeriodSpec::default()
        };
        slow.inject(Fault::SlowPeriod(spec)).expect("it is a fault");
        let found = completions(&mut slow, &rig, 400);
        assert_eq!(usual[..99], found[..99], "{}", rig.name());
        let slowed = slow.activity().slowed;
        // A quarter of the 300 reads in the period is 75; four standard deviations are 30.
        assert!((30..=105).contains(&slowed.count), "{}: {}", rig.name(), slowed.count);
        let each = slowed.lost.as_ms() / slowed.count as f64;
        assert!((100.0..100.0 + rig.turn() / 1e6).contains(&each), "{}: {each} ms", rig.name());
        assert!(found[399] - usual[399] >= Nanos(slowed.lost.0 / 2), "{}", rig.name());
    }
}

#[test]
fn repeated_slow_period_ends_and_returns() {
    let rig = shipped().into_iter().find(|rig| rig.name() == "wd800jd").expect("it ships");
    let slow = rig.with(|spec| {
        let (length_s, every_s) = (Some(1.0), Some(3.0));
        let period = SlowPeriodSpec {
            from_s: 2.0,
            length_s,
            every_s,
            delay_ms: Some(50.0),
            ..SlowPeriodSpec::default()
        };
        spec.mechanics.slow_periods = vec![period];
    });
    let (mut device, mut random, mut now) = (slow.device(), seeded(12), Instant::ZERO);
    while now < Instant::from_secs(12) {
        let done = serve(&mut device, now, Request::read(any_lbn(&mut random, &rig, 8), 8));
        let begins = now.as_secs();
        let is_slow = begins > 2.0 && (begins - 2.0) % 3.0 < 0.999;
        let is_quick = begins < 1.99 || (1.0..2.99).contains(&((begins - 2.0) % 3.0));
        let retries = done.parts.retries.as_ms();
        assert!(!is_slow || retries >= 50.0, "at {begins} s: {retries} ms");
        assert!(!is_quick || retries < 50.0, "at {begins} s: {retries} ms");
        now = done.completed;
    }
}

/// One drive has two independent causes of late reads: lost turns (a quarter of the accesses, one turn each) and a slow period (a quarter,
/// ten turns each).
#[test]
fn lost_turns_do_not_predict_late_accesses() {
    let rig = shipped().into_iter().find(|rig| rig.name() == "st2000dm006").expect("it ships");
    let rig = rig.with(|spec| {
        let turns_shares = vec![(1, 0.25)];
        spec.mechanics.lost_turns = Some(LostTurns { turns_shares, from_idle_only: false });
        spec.mechanics.retries = None;
        let period = SlowPeriodSpec { share: 0.25, delay_ms: Some(80.0), ..SlowPeriodSpec::default() };
        spec.mechanics.slow_periods = vec![period];
    });
    let (mut device, mut random, mut now) = (rig.device(), seeded(13), Instant::ZERO);
    // Numbers of reads, by whether they lost a turn (first index) and were late by the slow period (second index).
    let mut counts = [[0u32; 2]; 2];
    let mut lost_before = false;
    let mut follow = [[0u32; 2]; 2];
    for _ in 0..2000 {
        let done = serve(&mut device, now, Request::read(any_lbn(&mut random, &rig, 8), 8));
        now = done.completed;
        if done.cache != CacheUse::Miss {
            continue;
        }
        let turns = (done.parts.retries.0 as f64 / rig.turn()).round() as u32;
        let (lost, late) = (turns % 10 == 1, turns >= 10);
        counts[usize::from(lost)][usize::from(late)] += 1;
        follow[usize::from(lost_before)][usize::from(late)] += 1;
        lost_before = lost;
    }
    for [on_time, late] in counts.into_iter().chain(follow) {
        let share = f64::from(late) / f64::from(on_time + late);
        // A quarter; four standard deviations of 500 draws are 0.08.
        assert!((share - 0.25).abs() < 0.08, "{counts:?} {follow:?}");
    }
}

/// A slow period with a region delays only the reads that touch the region; one with a head delays only reads that begin on its surface.
#[test]
fn slow_region_and_slow_head_delay_only_their_own_reads() {
    for rig in all_plain().into_iter().filter(|rig| rig.spec.mechanics.constant_access_ms.is_none()) {
        let geometry = Geometry::new(&rig.spec).expect("it ships");
        let middle = geometry.sectors() / 2;
        let heads = rig.spec.geometry.heads;
        let always = SlowPeriodSpec { delay_ms: Some(500.0), ..SlowPeriodSpec::default() };
        let region = SlowPeriodSpec { start_lbn: Some(middle), ..always };
        let head = SlowPeriodSpec { head: Some(heads - 1), ..always };
        for (spec, is_head) in [(region, false), (head, true)] {
            let mut device = rig.device();
            device.inject(Fault::SlowPeriod(spec)).expect("the drive has it");
            let (mut random, mut now) = (seeded(14), Instant::ZERO);
            for _ in 0..100 {
                let lbn = any_lbn(&mut random, &rig, 8);
                let done = serve(&mut device, now, Request::read(lbn, 8));
                now = done.completed;
                let is_slow =
                    if is_head { geometry.extent_at(lbn).head == heads - 1 } else { lbn.0 + 8 > middle };
                let is_late = done.parts.retries >= Nanos::from_ms(500.0);
                assert!(is_late == is_slow || done.cache != CacheUse::Miss, "{}: {lbn:?}", rig.name());
            }
        }
    }
}

/// With a factor, an access takes that many times as long on average. A single access deviates by about a revolution at most, because
/// delays are whole revolutions.
#[test]
fn factor_multiplies_the_time_of_an_access() {
    for rig in all_plain() {
        let mut usual = rig.device();
        let mut slow = rig.device();
        let spec = SlowPeriodSpec { factor: Some(3.0), ..SlowPeriodSpec::default() };
        slow.inject(Fault::SlowPeriod(spec)).expect("it is a fault");
        let (mut random, mut now) = (seeded(15), Instant::ZERO);
        let (mut sum, mut count) = (0.0, 0);
        for _ in 0..200 {
            let request = Request::read(any_lbn(&mut random, &rig, 8), 8);
            let expected = serve(&mut usual, now, request);
            let found = serve(&mut slow, now, request);
            now = found.completed + Nanos::from_ms(1000.0);
            if expected.cache != CacheUse::Miss || expected.parts.retries > Nanos::ZERO {
                continue;
            }
            let access = expected.parts.seek + expected.parts.rotational_latency + expected.parts.media;
            let lost = (found.parts.retries.0 as f64 - 2.0 * access.0 as f64) / rig.turn();
            assert!((-1.0..1.01).contains(&lost), "{}: {lost} revolutions", rig.name());
            (sum, count) = (sum + lost, count + 1);
        }
        // The deviation has a standard deviation of at most half a revolution; four standard errors of a mean of 100 are 0.2.
        assert!(count < 100 || (sum / f64::from(count)).abs() < 0.2, "{}: {sum} over {count}", rig.name());
    }
}

#[test]
fn share_of_late_reads_grows_to_its_full_value() {
    let rig = shipped().into_iter().find(|rig| rig.name() == "wd800jd").expect("it ships");
    let rig = rig.with(|spec| spec.mechanics.retries = None);
    let mut device = rig.device();
    let spec = SlowPeriodSpec {
        grows_over_s: Some(40.0),
        share: 0.8,
        delay_mean_ms: Some(0.1),
        ..SlowPeriodSpec::default()
    };
    device.inject(Fault::SlowPeriod(spec)).expect("it is a fault");
    let (mut random, mut now) = (seeded(16), Instant::ZERO);
    let mut quarters = [[0u32; 2]; 5];
    while now < Instant::from_secs(50) {
        let quarter = (now.as_secs() / 10.0) as usize;
        let done = serve(&mut device, now, Request::read(any_lbn(&mut random, &rig, 8), 8));
        quarters[quarter][usize::from(done.parts.retries > Nanos::ZERO)] += 1;
        now = done.completed;
    }
    for (found, share) in quarters.into_iter().zip([0.1, 0.3, 0.5, 0.7, 0.8]) {
        let late = f64::from(found[1]) / f64::from(found[0] + found[1]);
        // Each share is of about 500 reads: four standard deviations are 0.09.
        assert!((late - share).abs() < 0.09, "{quarters:?}");
    }
}

#[test]
fn stalls_take_their_share_of_the_time() {
    for name in ["wd800jd", "exos-x18"] {
        let rig = shipped().into_iter().find(|rig| rig.name() == name).expect("it ships");
        let mut device = rig.device();
        let spec = StallSpec { from_s: 10.0, length_s: None, mean_gap_s: 3.0, mean_stall_ms: 1000.0 };
        device.inject(Fault::Stalls(spec)).expect("it is a fault");
        let (mut random, mut now) = (seeded(17), Instant::ZERO);
        let end = Instant::from_secs(2000);
        let mut waited = Nanos::ZERO;
        while now < end {
            let done = serve(&mut device, now, Request::read(any_lbn(&mut random, &rig, 8), 8));
            let late = done.completed - now > Nanos::from_ms(100.0);
            assert!(
                !late || now + (done.completed - now) > Instant::from_secs(10),
                "late before the first stall"
            );
            waited += if late { done.completed - now } else { Nanos::ZERO };
            now = done.completed;
        }
        // Stalls take a quarter of the time. There are about 500, whose sum has a standard deviation of 6 %.
        let share = waited.as_secs() / 1990.0;
        assert!((0.2..0.3).contains(&share), "{name}: {share}");
    }
}

#[test]
fn slow_period_outside_its_ranges_is_refused() {
    let mut device = all_plain()[0].device();
    let usual = SlowPeriodSpec { delay_ms: Some(1.0), ..SlowPeriodSpec::default() };
    let wrong = [
        ("length_s", SlowPeriodSpec { length_s: Some(0.0), ..usual }),
        ("share", SlowPeriodSpec { share: 1.1, ..usual }),
        ("share", SlowPeriodSpec { share: f64::NAN, ..usual }),
        ("every_s", SlowPeriodSpec { every_s: Some(2.0), ..usual }),
        ("grows_over_s", SlowPeriodSpec { grows_over_s: Some(0.0), ..usual }),
        ("head", SlowPeriodSpec { head: Some(1000), ..usual }),
        ("end_lbn", SlowPeriodSpec { end_lbn: Some(u64::MAX), ..usual }),
        ("start_lbn", SlowPeriodSpec { start_lbn: Some(7), end_lbn: Some(7), ..usual }),
        ("delay_ms", SlowPeriodSpec { delay_ms: None, ..usual }),
        ("delay_ms", SlowPeriodSpec { factor: Some(2.0), ..usual }),
        ("factor", SlowPeriodSpec { delay_ms: None, factor: Some(0.5), ..usual }),
    ];
    for (name, spec) in wrong {
        let error = device.inject(Fault::SlowPeriod(spec)).expect_err(name);
        assert!(matches!(&error, FaultError::Slow { key, .. } if key == name), "{name}: {error}");
    }
    let stalls = StallSpec { from_s: 0.0, length_s: None, mean_gap_s: 0.0, mean_stall_ms: 1.0 };
    assert!(device.inject(Fault::Stalls(stalls)).is_err());
}
