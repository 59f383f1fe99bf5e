//! FLUSH and FUA as the host sends them: by the drive's write cache, its interface and `host.fua`.

use crate::support::{Script, Seen};
use headstack_model::{Instant, Lbn, Nanos, Op, Request, drives};
use headstack_sim::{Engine, Rig};
use headstack_workload::Issue;

fn rig(name: &str, keys: &[(&str, &str)]) -> Rig {
    let mut rig = Rig::from_drive(drives::load(name).unwrap_or_else(|error| panic!("{error}")));
    rig.set_all(keys.iter().copied()).unwrap_or_else(|error| panic!("{name}: {error}"));
    rig
}

fn parsed(text: &str) -> Rig {
    Rig::parse(text, "rig", &mut |name| drives::load(name)).unwrap_or_else(|error| panic!("{error}"))
}

fn write(lbn: u64) -> Request {
    Request::write(Lbn(lbn), 8)
}

fn synced(lbn: u64) -> Request {
    Request { fua: true, ..write(lbn) }
}

/// What is seen of these requests, each at its time in ms.
fn seen(rig: &Rig, requests: &[(f64, Request)]) -> (Seen, Engine) {
    let issue = |(id, (ms, request)): (usize, &(f64, Request))| {
        (Instant::from_ms(*ms), Issue::new(0, *request, id as u64))
    };
    let issues: Vec<_> = requests.iter().enumerate().map(issue).collect();
    let mut engine = rig.build(1).unwrap_or_else(|error| panic!("{error}"));
    let mut seen = Seen::default();
    engine.run_observed(&mut Script::new(issues.clone()), &mut seen);
    seen.judge(&issues.iter().map(|(_, issue)| *issue).collect::<Vec<_>>());
    (seen, engine)
}

fn response(seen: &Seen, id: u64) -> Nanos {
    let found = seen.finished.iter().find(|one| one.id == id);
    found.expect("it has completed").completion.response()
}

fn flushes(engine: &Engine) -> u64 {
    (0..engine.devices()).map(|device| engine.device(device).activity().flushes).sum()
}

/// Writes that keep the disk busy, and a FLUSH among them.
const AMONG_WRITES: [fn(u64) -> Request; 4] = [write, write, |_| Request::flush(), write];

fn among_writes() -> Vec<(f64, Request)> {
    let lbns = [8, 80_000, 0, 160_000];
    AMONG_WRITES.iter().zip(lbns).map(|(make, lbn)| (0.0, make(lbn))).collect()
}

#[test]
fn flush_ends_at_once_on_every_drive_without_a_volatile_write_cache() {
    for (name, _) in drives::all() {
        let rig = rig(name, &[("drive.cache.write_cache", "none")]);
        if rig.volumes()[0].zones.is_some() {
            continue;
        }
        let (seen, engine) = seen(&rig, &among_writes());
        assert_eq!((response(&seen, 2), flushes(&engine)), (Nanos::ZERO, 0), "{name}");
    }
}

#[test]
fn flush_reaches_every_drive_with_a_write_cache() {
    for (name, _) in drives::all() {
        let rig = rig(name, &[]);
        let has_cache =
            rig.resolved().drive[0].spec.cache.write_cache != headstack_model::spec::WriteCache::None;
        if rig.volumes()[0].zones.is_some() || !has_cache {
            continue;
        }
        assert_eq!(flushes(&seen(&rig, &among_writes()).1), 1, "{name}");
    }
}

const PAIR: &str = "[drive]\npreset = \"wd800jd\"\ncount = 2\n";
const NONE: &str = "cache.write_cache = \"none\"\n";

#[test]
fn flush_ends_at_once_through_arrays_partitions_and_controllers() {
    let parts = [
        "[array]\norganisation = \"mirroring\"\ndrives = [\"disk0\", \"disk1\"]\n",
        "[array]\norganisation = \"striping\"\nstripe_unit_sectors = 64\ndrives = [\"disk0\", \"disk1\"]\n",
        "[host]\npartition_start = 2048\n",
        "[host.queue]\nelevator = \"mq-deadline\"\n",
        "[controller]\nkind = \"smart\"\n[bus]\ncontroller = \"controller\"\n",
        "[controller]\nkind = \"smart\"\ncache = { sectors = 4096 }\n",
        "[array]\norganisation = \"concatenation\"\ndrives = [\"disk0\", \"disk1\"]\n[host.queue]\nelevator = \"bfq\"\nwhole_disk = true\n",
    ];
    for part in parts {
        let (without, engine) = seen(&parsed(&format!("{PAIR}{NONE}{part}")), &among_writes());
        assert_eq!((response(&without, 2), flushes(&engine)), (Nanos::ZERO, 0), "{part}");
        let (with, engine) = seen(&parsed(&format!("{PAIR}{part}")), &among_writes());
        assert!(response(&with, 2) > Nanos::ZERO && flushes(&engine) > 0, "{part}");
    }
}

#[test]
fn flush_waits_for_the_memory_of_a_controller_and_not_for_drives_without_a_cache() {
    let cache = "[controller]\nkind = \"smart\"\ncache = { sectors = 4096, writes = \"write-back\" }\n";
    let requests = [(0.0, write(8)), (0.0, write(80_000)), (50.0, Request::flush())];
    let (seen, engine) = seen(&parsed(&format!("{PAIR}{NONE}{cache}")), &requests);
    // Two writes to the media, and no command for the drive's cache.
    assert!(response(&seen, 2) > Nanos::from_ms(4.0), "{:?}", response(&seen, 2));
    assert_eq!(flushes(&engine), 0);
}

#[test]
fn flush_through_a_page_cache_writes_its_pages_without_a_command_to_flush() {
    let mut rig = rig("wd800jd", &[("drive.cache.write_cache", "none"), ("host.page_cache.memory_mb", "64")]);
    rig.set("host.page_cache.buffer_direct", "true").expect("it is a key");
    let (seen, engine) = seen(&rig, &[(0.0, write(8)), (1.0, Request::flush())]);
    assert!(response(&seen, 1) > Nanos::from_ms(1.0), "the page goes to the media");
    assert_eq!(flushes(&engine), 0);
}

#[test]
fn synced_write_to_sata_is_a_write_and_a_flush_unless_the_host_uses_fua() {
    let requests = [(0.0, write(8)), (100.0, synced(800_000))];
    let without = seen(&rig("exos-x16", &[]), &requests);
    let with = seen(&rig("exos-x16", &[("host.fua", "true")]), &requests);
    assert_eq!([flushes(&without.1), flushes(&with.1)], [1, 0]);
    let forced = |seen: &Seen| seen.commands.iter().filter(|command| command.request.fua).count();
    assert_eq!([forced(&without.0), forced(&with.0)], [0, 1]);
    // The load sees one request.
    assert_eq!(without.0.finished.len(), 2);
    let of_flush = without.0.commands.iter().find(|one| one.request.op == Op::Flush).expect("there is one");
    assert!(response(&without.0, 1) > of_flush.response(), "the flush is a part of the write");
}

#[test]
fn synced_write_takes_as_long_as_a_write_and_a_flush() {
    for name in ["exos-x16", "wd800jd", "samsung-hd103sj"] {
        let (one, _) = seen(&rig(name, &[]), &[(0.0, synced(800_000))]);
        let (write_alone, _) = seen(&rig(name, &[]), &[(0.0, write(800_000))]);
        let written = response(&write_alone, 0);
        let (two, _) = seen(&rig(name, &[]), &[(0.0, write(800_000)), (written.as_ms(), Request::flush())]);
        assert_eq!(response(&one, 0), written + response(&two, 1), "{name}");
    }
}

#[test]
fn synced_write_is_a_plain_write_without_a_write_cache_and_fua_on_scsi() {
    let none = [("drive.cache.write_cache", "none")];
    let (forced, engine) = seen(&rig("exos-x16", &none), &[(0.0, synced(800_000))]);
    assert_eq!((forced.commands.len(), flushes(&engine)), (1, 0));
    assert_eq!(response(&forced, 0), response(&seen(&rig("exos-x16", &none), &[(0.0, write(800_000))]).0, 0));
    let full = [("drive.cache.write_cache", "full"), ("drive.cache.dirty_max_sectors", "512")];
    let (scsi, engine) = seen(&rig("cheetah-9lp", &full), &[(0.0, synced(800_000))]);
    assert!(scsi.commands[0].request.fua && flushes(&engine) == 0, "{:?}", scsi.commands);
}

#[test]
fn flushes_that_wait_for_one_share_the_next() {
    let many: Vec<_> = (0..32).map(|number| (0.0, synced(number * 400_000))).collect();
    let (_, engine) = seen(&rig("exos-x16", &[]), &many);
    // The first waits until no synced write is in progress, so that one covers all of them.
    assert_eq!(flushes(&engine), 1);
    let requests =
        [(0.0, write(8)), (1.0, Request::flush()), (1.1, Request::flush()), (1.2, Request::flush())];
    let (seen, engine) = seen(&rig("exos-x16", &[]), &requests);
    assert_eq!(flushes(&engine), 2);
    let ended = |id: u64| Instant::from_ms(requests[id as usize].0) + response(&seen, id);
    assert_eq!(ended(2), ended(3), "both wait for the first, then for their own");
    assert!(ended(2) > ended(1));
}

#[test]
fn synced_write_of_each_member_is_followed_by_a_flush_of_that_member() {
    let array =
        "[array]\norganisation = \"striping\"\nstripe_unit_sectors = 64\ndrives = [\"disk0\", \"disk1\"]\n";
    let (_, engine) = seen(&parsed(&format!("{PAIR}{array}")), &[(0.0, synced(8))]);
    let of_each: Vec<u64> = (0..2).map(|device| engine.device(device).activity().flushes).collect();
    assert_eq!(of_each, [1, 0]);
}
