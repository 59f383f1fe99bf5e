//! The node's queue by position in front of a simulated drive, as `headstack serve --order` makes it in front of a real one.

use headstack_model::{Instant, Lbn, Request, drives};
use headstack_sim::layer::Submission;
use headstack_sim::rig::{Rig, shipped};
use headstack_sim::{Engine, Finished, Outcome};
use headstack_streams::position::{MapState, OrderView, PositionQueue};
use headstack_workload::{Closed, Inbox, Issue, Pattern, Region, Shape};
use std::collections::BTreeMap;

fn drive(name: &str, keys: &[(&str, &str)]) -> Rig {
    let mut rig = shipped::load(name).expect("it is shipped");
    keys.iter().for_each(|(key, value)| rig.set(key, value).expect("it is a key"));
    rig
}

fn queue(engine: &Engine) -> OrderView {
    engine.layer::<PositionQueue<Submission>>(0).expect("the volume has a queue").view()
}

/// Random requests of 4 KiB, 32 at a time; returns the completions and the queue at the end.
fn run(rig: &Rig, read_share: f64, requests: u64) -> (Vec<Finished>, Engine) {
    let region = Region::whole(rig.volumes()[0].sectors);
    let shape = Shape { region, pattern: Pattern::Random, sectors: 8, alignment: 8, read_share };
    let mut load = Closed::new(shape, 32, requests, 3).expect("it fits");
    let mut engine = rig.build(1).expect("the rig is valid");
    let mut all = Vec::new();
    engine.run(&mut load, &mut |finished: &Finished| all.push(*finished));
    (all, engine)
}

fn rate(all: &[Finished]) -> f64 {
    let end = all.iter().map(|finished| finished.completion.completed).max();
    all.len() as f64 / end.expect("there are requests").0 as f64
}

#[test]
fn order_by_position_serves_more_once_the_ends_of_reads_agree_with_the_drive_file() {
    let with = |order| run(&drive("wd800jd", &[("node_queue.order", order)]), 1.0, 4_000);
    let ((by_block, _), (by_position, engine)) = (with("c-look"), with("position"));
    let view = queue(&engine);
    assert_eq!((view.state, view.order.as_str()), (MapState::Agrees, "sptf"));
    assert!(rate(&by_position) > 1.1 * rate(&by_block), "{} {}", rate(&by_position), rate(&by_block));
}

#[test]
fn every_request_is_answered_once_and_fully_accounted() {
    for (name, window) in [("atlas-10k", "1"), ("exos-x18", "4")] {
        let rig = drive(name, &[("node_queue.order", "position"), ("node_queue.window", window)]);
        let (all, engine) = run(&rig, 0.5, 2_000);
        let ids: BTreeMap<u64, Instant> =
            all.iter().map(|done| (done.id, done.completion.completed)).collect();
        assert_eq!((ids.len(), all.len()), (2_000, 2_000), "{name}");
        for Finished { completion, .. } in &all {
            assert_eq!(completion.outcome, Outcome::Done);
            assert_eq!(completion.parts.total(), completion.response(), "{completion:?}");
        }
        let view = queue(&engine);
        assert_eq!((view.waiting, view.at_disk), (0, 0), "{name}");
    }
}

#[test]
fn queue_by_block_number_serves_at_the_times_of_the_hosts_queue() {
    let times = |keys: &[(&str, &str)]| -> BTreeMap<u64, Instant> {
        let mut engine = drive("atlas-10k", keys).build(1).expect("the rig is valid");
        let mut inbox = Inbox::default();
        for id in 0..1_000 {
            let lbn = Lbn(id * 7_919_771 % 2_000_000 * 8);
            inbox.put(Instant(id * 4_000_000), Issue::new(0, Request::read(lbn, 8), id));
        }
        let mut times = BTreeMap::new();
        engine.run(&mut inbox, &mut |done: &Finished| _ = times.insert(done.id, done.completion.completed));
        times
    };
    let node = times(&[("node_queue.order", "c-look")]);
    let host = [("order", "c-look"), ("knows", "lbn"), ("depth", "1"), ("merge", "none")];
    let keys = host.map(|(key, value)| (format!("host.queue.{key}"), value));
    let host = times(&keys.each_ref().map(|(key, value)| (key.as_str(), *value)));
    assert_eq!(node.len(), 1_000);
    assert!(node == host, "{:?}", node.iter().find(|(id, time)| host[*id] != **time));
    assert!(node != times(&[]), "in the order of arrival");
}

#[test]
fn faults_name_the_key_and_what_is_allowed() {
    let fault = |text: &str| {
        Rig::parse(text, "rig", &mut |name| drives::load(name)).expect_err("it is invalid").to_string()
    };
    let disk = "[drive]\npreset = \"wd800jd\"\n";
    let key = |line: &str| fault(&format!("{disk}[node_queue]\norder = \"position\"\n{line}\n"));
    assert_eq!(key("window = 0"), "rig:5: node_queue.window: 0 is outside 1 to 256 commands");
    let needs = fault(&format!("{disk}[node_queue]\norder = \"spctf\"\n"));
    assert!(needs.starts_with("rig:4: node_queue.order: order `spctf` needs position and cache"), "{needs}");
    let array = "[drive]\npreset = \"wd800jd\"\ncount = 2\nvolume = \"d\"\n[array]\norganisation = \"striping\"\ndrives = [\"d\"]\nstripe_unit_sectors = 128\n";
    let whole = fault(&format!("{array}[node_queue]\norder = \"position\"\n"));
    assert_eq!(whole, "rig:9: node_queue: is for volumes of one drive; `array` is an array");
}
