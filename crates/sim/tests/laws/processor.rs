//! The host's processor and the network to its clients: no lane is busy for longer than the run, each piece of work is done once, and work
//! without a cost changes no completion.

use headstack_model::{Nanos, drives};
use headstack_sim::{Engine, Finished, ProcessorUse, Rig, WorkKind};
use headstack_workload::{Closed, Pattern, Region, Shape};

const DRIVES: u32 = 2;

fn engine(host: &str) -> Engine {
    let text = format!("[drive]\npreset = \"wd800jd\"\ncount = {DRIVES}\n{host}");
    let rig = Rig::parse(&text, "host.toml", &mut |name| drives::load(name));
    rig.and_then(|rig| rig.build(1)).unwrap_or_else(|error| panic!("{error}: {text}"))
}

/// Runs a closed load of `requests` requests of 64 KiB on the first volume, with `depth` outstanding. Returns the finished requests.
fn run(engine: &mut Engine, pattern: Pattern, read_share: f64, depth: u32, requests: u64) -> Vec<Finished> {
    let region = Region::whole(20_000_000);
    let shape = Shape { region, pattern, sectors: 128, alignment: 8, read_share };
    let mut load = Closed::new(shape, depth, requests, 3).expect("it fits");
    let mut finished = Vec::new();
    engine.run(&mut load, &mut |one| finished.push(*one));
    finished
}

fn usage(engine: &Engine) -> ProcessorUse {
    engine.processor_usage().expect("the host has a processor")
}

fn busy(usage: &ProcessorUse, kind: WorkKind) -> Nanos {
    usage.kinds[kind as usize].1
}

/// All costs of the processor together.
const ALL: &str = "system_call_us = 20.0\ncopy_us_per_kib = 3.0\nsubmit_us = 50.0\ninterrupt_us = 30.0\n\
                   program_us_per_byte = 0.001\nclient_request_us = 40.0\nclient_us_per_kib = 2.0\n";

#[test]
fn no_lane_is_busy_for_longer_than_the_run_and_kinds_add_up() {
    let page_cache = "[host.page_cache]\nbuffer_direct = true\n";
    let node = "[node]\nmemory_bytes = 16777216\n";
    for (more, pattern) in [
        ("", Pattern::Random),
        ("[host.interface]\nkind = \"pio-4\"\n", Pattern::Sequential),
        ("[host.interface]\nkind = \"ultra-dma-2\"\npiece_us = 1.0\n", Pattern::Sequential),
        (page_cache, Pattern::Sequential),
        (node, Pattern::Sequential),
    ] {
        for lanes in [1, 2, 5] {
            let mut engine = engine(&format!("[host.processor]\nlanes = {lanes}\n{ALL}{more}"));
            let finished = run(&mut engine, pattern, 0.7, 16, 2_000);
            assert_eq!(finished.len(), 2_000, "{more}");
            let usage = usage(&engine);
            assert_eq!(usage.lanes.len(), lanes);
            assert!(
                usage.lanes.iter().all(|lane| *lane <= engine.now().since_start()),
                "{usage:?} in {:?}",
                engine.now()
            );
            let kinds: u64 = usage.kinds.iter().map(|(_, time)| time.0).sum();
            assert_eq!(kinds, usage.busy().0, "{more}");
            for finished in &finished {
                let completion = &finished.completion;
                assert_eq!(completion.parts.total(), completion.response(), "{more}, {lanes} lanes");
            }
        }
    }
}

#[test]
fn every_request_and_command_is_worked_on_once() {
    let mut engine = engine(&format!("[host.processor]\n{ALL}"));
    let finished = run(&mut engine, Pattern::Random, 0.5, 8, 1_000);
    let usage = usage(&engine);
    let commands = engine.device(0).activity().ended();
    let bytes = finished.len() as u64 * 65_536;
    assert_eq!(commands, 1_000);
    let expected = [
        (WorkKind::SystemCall, 1_000 * 20_000),
        (WorkKind::Submit, commands * 50_000),
        (WorkKind::Interrupt, commands * 30_000),
        (WorkKind::Program, bytes),
        (WorkKind::Client, 1_000 * 40_000 + bytes / 1024 * 2_000),
        (WorkKind::Copy, 0),
        (WorkKind::WordRead, 0),
    ];
    for (kind, ns) in expected {
        assert_eq!(busy(&usage, kind), Nanos(ns), "{kind:?}");
    }
}

#[test]
fn page_cache_copies_each_byte_once() {
    let mut engine =
        engine("[host.processor]\ncopy_us_per_kib = 4.0\n[host.page_cache]\nbuffer_direct = true\n");
    run(&mut engine, Pattern::Random, 1.0, 4, 500);
    assert_eq!(busy(&usage(&engine), WorkKind::Copy), Nanos(500 * 64 * 4_000));
}

#[test]
fn processor_without_costs_changes_nothing() {
    let free = "[host.processor]\nlanes = 1\n[host.clients]\n";
    let page_cache = "[host.page_cache]\nbuffer_direct = true\ncopy_us_per_page = 0.0\n";
    let elevator = "[host.queue]\nelevator = \"deadline\"\n";
    let node = "[node]\nmemory_bytes = 16777216\n";
    for rest in ["", page_cache, elevator, node] {
        for pattern in [Pattern::Random, Pattern::Sequential] {
            let with = run(&mut engine(&format!("{free}{rest}")), pattern, 0.6, 8, 1_000);
            let without = run(&mut engine(rest), pattern, 0.6, 8, 1_000);
            assert!(with == without, "{rest}, {pattern:?}");
        }
    }
}

#[test]
fn saturated_processor_serves_at_the_rate_of_its_lanes() {
    let rate = |lanes: u32| {
        let cost = "client_request_us = 1000.0\nclient_us_per_kib = 15.625\n";
        let mut engine = engine(&format!("[host.processor]\nlanes = {lanes}\n{cost}[node]\n"));
        let finished = run(&mut engine, Pattern::Sequential, 1.0, 16, 1_000);
        1_000.0 / finished[999].completion.completed.as_secs()
    };
    // Each request costs 1 ms, and its 64 KiB another 1 ms.
    let (one, three) = (rate(1), rate(3));
    assert!((495.0..=500.1).contains(&one), "{one}");
    // Three lanes could serve 1,500 requests per second, but the disk serves only 976.
    assert_eq!(three, rate(1_000));
    assert!(three > 1.5 * one && three < 1_500.0, "{three} of {one}");
}

#[test]
fn round_trip_of_a_client_adds_to_every_response() {
    let responses = |host: &str| {
        let finished = run(&mut engine(host), Pattern::Sequential, 1.0, 1, 300);
        finished.iter().map(|one| one.completion.response()).collect::<Vec<_>>()
    };
    let (near, far) = (responses(""), responses("[host.clients]\nround_trip_us = 340.0\n"));
    // In both runs the first block passes the head at the same time, so that only the half of the round trip back to the client is added.
    assert_eq!(far[0], near[0] + Nanos(170_000));
    assert!(far.iter().all(|response| *response >= Nanos(340_000)));
}
