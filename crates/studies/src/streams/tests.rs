//! What the rows and the runs of the study are made of.

use super::STUDY;
use super::play::{MIB, Plan, own_mb_s};
use crate::study::{Alone, Length, Setting};
use headstack_model::Nanos;

fn plan(readers: u32) -> Plan {
    let setting = Setting { length: Length::Quick, rows: &[], bench: &Alone };
    let secs = Nanos::from_secs;
    Plan { warm: secs(2), counted: secs(4), ..Plan::new(&setting, readers) }
}

#[test]
fn plan_settings_appear_in_its_rig() {
    let plan = Plan { disks: 4, controllers: 2, ..plan(10) };
    let plan = plan.with_segments(4, 2 * MIB).reported(MIB, 3, 5, 16 * MIB).with("controller.queue_depth", 7);
    let rig = plan.rig().expect("the rig is good");
    let resolved = rig.resolved();
    assert_eq!((rig.volumes().len(), resolved.controller.len()), (4, 2));
    assert_eq!(resolved.controller[1].queue_depth, Some(7));
    let cache = &resolved.drive[1].spec.cache;
    assert_eq!((cache.segments, cache.segment_sectors, cache.read_ahead_min_sectors), (4, 4096, 4095));
    let node = resolved.node.as_ref().expect("it has a node");
    assert_eq!((node.read_ahead_bytes, node.dispatch_set), (Some(MIB), Some(3)));
    assert_eq!((node.requests_per_turn, node.memory_bytes), (Some(5), 16 * MIB));
}

#[test]
fn streams_and_random_reader_are_measured_separately() {
    let plan = Plan { disks: 2, random: true, ..plan(3) };
    let outcome = plan.run().expect("the plan is good");
    assert_eq!(outcome.streams_mb_s.len(), 6);
    assert!(outcome.streams_mb_s.iter().all(|rate| *rate > 0.0) && outcome.random_mb_s > 0.0);
    let bytes = outcome.streams_ms.len() as f64 * 65536.0 + outcome.random_ms.len() as f64 * 4096.0;
    let all = (outcome.mb_s() + outcome.random_mb_s) * 4e6;
    assert!((bytes - all).abs() < 1.0, "{bytes} and {all}");
}

#[test]
fn lone_reader_gets_the_rate_of_the_bare_disk() {
    let own = own_mb_s(1, Length::Quick).expect("the drive ships");
    let one = plan(1).run().expect("the plan is good").mb_s();
    assert!(one < 1.01 * own && one > 0.95 * own, "{one} of {own} MB/s");
}

#[test]
fn only_goal_rows_name_headstack_as_their_source() {
    let rows = STUDY.expected().unwrap_or_else(|error| panic!("{error}"));
    for row in rows {
        let is_ours = row.metric.starts_with("goal.");
        assert_eq!(row.source.starts_with("Headstack"), is_ours, "{}", row.metric);
    }
}
