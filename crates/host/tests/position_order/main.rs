//! A node that orders its disk's commands by position, in virtual time: its gain, and its behaviour once the drive file is that of another
//! disk.
//!
//! Clients with one random read each keep the node's core busy. Its disk is an emulated one that starts commands late and reports their
//! ends late, by drawn times. The same load on the same disk behind the simulator's own queue gives the gain to expect.

mod bench;

use bench::{Bench, Setting};
use headstack_model::{DriveSpec, Nanos, drives};
use headstack_streams::position::MapState;

fn drive(name: &str) -> DriveSpec {
    drives::load(name).expect("it is shipped")
}

/// A disk of the same size and speed whose tracks begin elsewhere on the circle, as those of another disk of the same model may.
fn other_disk(name: &str) -> DriveSpec {
    let mut spec = drive(name);
    for zone in &mut spec.geometry.band_zones {
        zone.track_skew_turns += 0.013;
    }
    spec
}

fn rate(setting: &Setting) -> f64 {
    Bench::new(setting).run(4_000).rate()
}

/// The gain of an order over that by block number, at the node with a drive file and in the simulator.
fn gains(name: &str, order: &str, in_simulator: &str, window: u32) -> (f64, f64) {
    let disk = drive(name);
    let node = Setting { map: Some(disk.clone()), window, ..Setting::new(disk.clone()) };
    let by_position = rate(&Setting { order: order.to_string(), ..node.clone() });
    let by_block = rate(&Setting { order: "c-look".to_string(), ..node });
    let simulated = |order: &str, knows: &str| {
        let keys = [("order", order), ("knows", knows), ("depth", &window.to_string())];
        let keys = keys.map(|(key, value)| (format!("host.queue.{key}"), value.to_string()));
        rate(&Setting { keys: keys.into(), late: Nanos::ZERO, ..Setting::new(disk.clone()) })
    };
    (by_position / by_block, simulated(in_simulator, "position") / simulated("c-look", "lbn"))
}

#[test]
fn order_by_position_gains_as_much_as_in_the_simulator() {
    for (name, window, least) in [("wd800jd", 1, 1.25), ("st2000dm006", 1, 1.03), ("cheetah-x15", 1, 1.2)] {
        let (real, simulated) = gains(name, "position", "sptf", window);
        eprintln!("{name}, window {window}: {real:.3}, in the simulator {simulated:.3}");
        assert!(real > least && (0.9..1.1).contains(&(real / simulated)), "{name}: {real}, {simulated}");
    }
}

#[test]
fn order_by_cylinder_gains_as_much_as_in_the_simulator() {
    // Surfaces of this disk follow each other, so that block numbers do not follow cylinders.
    let (real, simulated) = gains("samsung-hd400ld", "cylinder", "c-look-cylinder", 1);
    eprintln!("samsung-hd400ld: {real:.3}, in the simulator {simulated:.3}");
    assert!(real > 1.08 && (0.9..1.1).contains(&(real / simulated)), "{real}, {simulated}");
}

#[test]
fn map_of_another_disk_falls_back_to_block_number() {
    for order in ["position", "cylinder", "wstf"] {
        let setting = Setting {
            map: Some(other_disk("wd800jd")),
            order: order.to_string(),
            ..Setting::new(drive("wd800jd"))
        };
        let mut bench = Bench::new(&setting);
        let outcome = bench.run(2_000);
        let view = bench.order();
        assert_eq!((view.state, view.order.as_str()), (MapState::Differs, "c-look"), "{order}: {view:?}");
        assert_eq!((view.fallbacks, bench.changes()), (1, &[MapState::Differs][..]), "it is reported once");
        let by_block = Setting { order: "c-look".to_string(), map: Some(drive("wd800jd")), ..setting };
        let lost = outcome.rate() / Bench::new(&by_block).run(2_000).rate();
        assert!((0.97..1.03).contains(&lost), "{order}: {lost} of the rate by block number");
    }
}

#[test]
fn disk_swapped_while_it_serves_is_noticed_and_loses_no_request() {
    let setting = Setting { map: Some(drive("wd800jd")), ..Setting::new(drive("wd800jd")) };
    let mut bench = Bench::new(&setting);
    bench.run(1_000);
    assert_eq!(bench.order().state, MapState::Agrees, "{:?}", bench.order());
    bench.swap(&other_disk("wd800jd"), Nanos::ZERO);
    // Every read is answered once and in time: the bench watches that.
    bench.run(300);
    let view = bench.order();
    assert_eq!((view.state, view.order.as_str()), (MapState::Differs, "c-look"), "{view:?}");
    assert_eq!(bench.changes(), [MapState::Agrees, MapState::Differs]);
    bench.run(2_000);
    assert_eq!((bench.order().state, bench.order().fallbacks), (MapState::Differs, 1));
    // The disk of the map comes back.
    bench.swap(&drive("wd800jd"), Nanos::ZERO);
    bench.run(300);
    assert_eq!(bench.changes(), [MapState::Agrees, MapState::Differs, MapState::Agrees]);
    assert_eq!(bench.order().order, "sptf");
}

#[test]
fn spindle_that_stopped_and_started_is_found_again() {
    let setting = Setting { map: Some(drive("wd800jd")), ..Setting::new(drive("wd800jd")) };
    let mut bench = Bench::new(&setting);
    bench.run(500);
    bench.swap(&drive("wd800jd"), Nanos::from_ms(3.0));
    bench.run(600);
    assert_eq!(bench.changes(), [MapState::Agrees, MapState::Differs, MapState::Agrees]);
}

#[test]
fn late_answers_and_a_wrong_clock_leave_the_position() {
    // A clock that is fast by 200 millionths, and answers that are up to 0.2 ms late.
    let setting = Setting {
        map: Some(drive("wd800jd")),
        late: Nanos::from_ms(0.2),
        clock_ppm: 200,
        ..Setting::new(drive("wd800jd"))
    };
    let mut bench = Bench::new(&setting);
    bench.run(3_000);
    let view = bench.order();
    assert_eq!(bench.changes(), [MapState::Agrees]);
    let error = view.error_p50.expect("reads were predicted");
    assert!(error < Nanos::from_ms(0.2), "{view:?}");
    assert!(view.missed * 10 < view.predictions, "{view:?}");
}

#[test]
fn writes_and_reads_that_a_cache_answers_leave_the_position() {
    let setting = Setting {
        map: Some(drive("wd800jd")),
        write_share: 0.3,
        hot_share: 0.3,
        ..Setting::new(drive("wd800jd"))
    };
    let mut bench = Bench::new(&setting);
    bench.run(4_000);
    assert_eq!(bench.changes(), [MapState::Agrees], "{:?}", bench.order());
}

#[test]
fn far_read_does_not_starve_under_order_by_position() {
    // All but one client read a fiftieth of the disk, and the disk is never without them.
    let setting = Setting {
        map: Some(drive("wd800jd")),
        near_share: 0.02,
        late: Nanos::ZERO,
        ..Setting::new(drive("wd800jd"))
    };
    let guarded = Bench::new(&setting).run(6_000);
    let free = Bench::new(&Setting { guard_cost: 0.0, ..setting }).run(6_000);
    eprintln!("longest {} with the guard, {} without", guarded.longest, free.longest);
    assert!(guarded.longest.0 * 2 < free.longest.0, "{} and {}", guarded.longest, free.longest);
}
