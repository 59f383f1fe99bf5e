//! `zonemode=zbd` on volumes with and without zones.

use crate::ours::{parse, run};
use headstack_model::zones::{ZoneCommand, ZoneLayout, ZoneModel, ZoneState, Zones};
use headstack_model::{Nanos, Op, Request};
use headstack_workload::{VolumeInfo, VolumeZones};

const ZONE: u64 = 2048;

/// A volume with ten zones of 1 MiB and a shorter one. The first two are conventional.
fn volume(full_at_first: bool) -> VolumeInfo {
    let layout = ZoneLayout {
        model: ZoneModel::HostManaged,
        sectors: 10 * ZONE + 600,
        zone_sectors: ZONE,
        conventional: 2,
        open_max: 3,
        active_max: Some(3),
    };
    let zones = Some(VolumeZones { layout, full_at_first });
    VolumeInfo { name: "sda".to_string(), sectors: layout.sectors, sector_bytes: 512, zones }
}

fn requests(volume: &VolumeInfo, keys: &str) -> Vec<Request> {
    let file = parse(&format!("[j]\ndirect=1\nzonemode=zbd\n{keys}\n")).expect("it can be read");
    let mut load = file.build(std::slice::from_ref(volume), 7).unwrap_or_else(|error| panic!("{error}"));
    run(&mut load, Nanos(1000), 20_000).iter().map(|timed| timed.issue.request).collect()
}

/// The zones of the volume after these requests, all of which they must accept. A write at the start of a full zone resets it.
fn accept_all(volume: &VolumeInfo, requests: &[Request]) -> Zones {
    let VolumeZones { layout, full_at_first } = volume.zones.expect("it has zones");
    let mut zones = if full_at_first { Zones::new(layout).full() } else { Zones::new(layout) };
    for request in requests {
        let zone = zones.zone(zones.number_at(request.lbn));
        if request.op == Op::Write && zone.state == ZoneState::Full && zone.start == request.lbn {
            zones.command(ZoneCommand::Reset, zones.number_at(request.lbn)).expect("it is full");
        }
        zones.accept(request).unwrap_or_else(|refusal| panic!("{request:?}: {refusal}"));
    }
    zones
}

#[test]
fn host_managed_disk_accepts_every_write_of_zone_mode() {
    for full in [false, true] {
        for rw in ["write", "randwrite", "randrw", "rw"] {
            for sizes in ["bs=4k", "bs=24k", "bssplit=4k/50:20k/50", "bs=1m"] {
                let volume = volume(full);
                let made = requests(
                    &volume,
                    &format!("rw={rw}\n{sizes}\nnorandommap\nio_size=30m\niodepth=4\nioengine=libaio"),
                );
                assert!(made.len() > 20, "{rw} {sizes}: {}", made.len());
                accept_all(&volume, &made);
            }
        }
    }
}

#[test]
fn reads_go_where_data_was_written() {
    let volume = volume(false);
    let made = requests(&volume, "rw=randrw\nbs=16k\nnorandommap\nio_size=20m");
    assert_eq!(made[0].op, Op::Write, "nothing can be read yet");
    let mut written = 0;
    for (index, request) in made.iter().enumerate().filter(|(_, request)| request.op == Op::Read) {
        let zones = accept_all(&volume, &made[..index]);
        if request.lbn.0 >= 2 * ZONE {
            assert_eq!(zones.written(request), u64::from(request.sectors), "{request:?}");
            written += 1;
        }
    }
    assert!(written > 100, "{written} reads of zones");
    let beyond = requests(&volume, "rw=randread\nbs=16k\nread_beyond_wp=1");
    assert_eq!(beyond.len(), (10 * 64) + 18, "every whole 16 KiB once");
    let none = requests(&volume, "rw=randread\nbs=16k\noffset=2m");
    assert_eq!(none.len(), 0, "nothing is written there");
}

#[test]
fn mixed_job_continues_while_reads_find_too_little() {
    let volume = volume(false);
    for keys in ["rw=randrw\nbs=64k,4k\nnorandommap", "rw=rw\nbs=4k"] {
        let made = requests(&volume, &format!("{keys}\noffset=2m\nio_size=4m"));
        let bytes: u64 = made.iter().map(|request| u64::from(request.sectors) * 512).sum();
        assert!(bytes >= 4 << 20, "{keys}: {bytes} bytes in {} requests", made.len());
    }
}

#[test]
fn no_more_zones_are_written_in_part_than_may_be_open() {
    let volume = volume(true);
    let made =
        requests(&volume, "rw=randwrite\nbs=4k\nnorandommap\noffset=2m\nio_size=12m\nmax_open_zones=2");
    let mut most = 0;
    for count in (1..made.len()).step_by(16) {
        most = most.max(accept_all(&volume, &made[..count]).active());
    }
    assert_eq!(most, 2);
}

#[test]
fn volume_without_zones_gets_empty_ones_of_zonesize() {
    let plain = VolumeInfo { zones: None, ..volume(false) };
    let made = requests(&plain, "rw=randwrite\nbs=4k\nzonesize=1m\nnorandommap\nio_size=8m");
    let mut pointers = [0; 11];
    for request in &made {
        let zone = (request.lbn.0 / ZONE) as usize;
        assert_eq!(request.lbn.0 % ZONE, pointers[zone] % if zone == 10 { 600 } else { ZONE }, "{request:?}");
        pointers[zone] = request.lbn.0 % ZONE + u64::from(request.sectors);
    }
}

#[test]
fn jobs_of_one_volume_share_its_write_pointers() {
    let volume = volume(true);
    let keys = "filename=sda\nrw=randwrite\nbs=4k\nnorandommap\noffset=2m\nsize=4m\nio_size=8m\nnumjobs=3\nioengine=libaio\niodepth=2";
    let made = requests(&volume, keys);
    assert_eq!(made.len(), 3 * 2048);
    accept_all(&volume, &made);
}

/// Each write of a job, and whether its zone is reset before it.
fn resets(volume: &VolumeInfo, keys: &str) -> Vec<(Request, bool)> {
    let file = parse(&format!("[j]\ndirect=1\nzonemode=zbd\nrw=randwrite\nnorandommap\noffset=2m\n{keys}\n"));
    let built = file.expect("it can be read").build(std::slice::from_ref(volume), 7);
    let mut load = built.unwrap_or_else(|error| panic!("{error}"));
    let all = run(&mut load, Nanos(1000), 20_000);
    all.iter().map(|timed| (timed.issue.request, timed.issue.resets_zone)).collect()
}

#[test]
fn zone_of_every_nth_write_is_reset() {
    let volume = volume(false);
    let made = resets(&volume, "bs=64k\nio_size=40m\nzone_reset_frequency=0.1\niodepth=8\nioengine=libaio");
    let mut zones = Zones::new(volume.zones.expect("it has zones").layout);
    let mut count = 0;
    for (number, (request, is_reset)) in made.iter().enumerate() {
        let zone = zones.number_at(request.lbn);
        let before = zones.zone(zone);
        // A reset is due at every tenth write. A full zone needs no reset, because a write at its start resets it, and an empty one neither.
        let is_due = (number + 1) % 10 == 0;
        assert!(is_due || !is_reset, "write {number}");
        if is_due && before.state != ZoneState::Empty {
            assert_eq!(request.lbn, before.start, "write {number}");
            assert_eq!(*is_reset, before.state != ZoneState::Full, "write {number}");
        }
        if request.lbn == before.start && (*is_reset || before.state == ZoneState::Full) {
            count += u32::from(*is_reset);
            zones.command(ZoneCommand::Reset, zone).expect("it is no conventional zone");
        }
        zones.accept(request).unwrap_or_else(|refusal| panic!("{request:?}: {refusal}"));
    }
    assert!(count > 30, "{count} zones were reset");
}

#[test]
fn zones_are_reset_once_the_threshold_is_written() {
    let volume = volume(false);
    let first = |keys: &str| {
        let made = resets(&volume, &format!("bs=64k\nio_size=40m\nzone_reset_frequency=0.5\n{keys}"));
        made.iter().position(|(_, is_reset)| *is_reset)
    };
    // Of eight whole zones and a shorter one, 135 times 64 KiB.
    let (at_once, half) = (first("").expect("some"), first("zone_reset_threshold=0.5").expect("some"));
    assert!(at_once < 12 && (66..90).contains(&half), "{at_once} and {half}");
    assert_eq!(first("zone_reset_frequency=0"), None);
}

#[test]
fn job_waits_for_its_requests_before_it_resets_a_zone() {
    let volume = volume(false);
    let keys = "[j]\ndirect=1\nzonemode=zbd\nrw=write\nbs=64k\noffset=2m\nsize=8m\niodepth=8\nioengine=libaio\nzone_reset_frequency=0.1";
    let mut load = parse(keys).expect("it can be read").build(&[volume], 7).expect("it fits");
    let service = Nanos(1000);
    let made = run(&mut load, service, 20_000);
    let reset = made.iter().position(|timed| timed.issue.resets_zone).expect("some zone is reset");
    assert!(reset > 0 && made[reset].at >= made[reset - 1].at + service, "{:?}", &made[reset - 1..=reset]);
}

#[test]
fn jobs_that_zones_forbid_are_rejected_in_one_line() {
    let unfit = |volume: &VolumeInfo, text: &str| {
        let file = parse(text).unwrap_or_else(|error| panic!("{error}"));
        file.build(std::slice::from_ref(volume), 1).expect_err(text).to_string()
    };
    let zoned = volume(true);
    let plain = VolumeInfo { zones: None, ..volume(true) };
    for (volume, text, wanted) in [
        (
            &zoned,
            "[j]\nrw=randwrite\ndirect=1",
            "2: rw: writes at random, which `sda` refuses beyond its first 2097152 bytes; say zonemode=zbd",
        ),
        (
            &zoned,
            "[j]\nrw=write\nzonemode=zbd",
            "3: zonemode: needs direct=1: a page cache changes the order of writes",
        ),
        (
            &zoned,
            "[j]\nrw=write\nzonemode=zbd\ndirect=1\nzonesize=2m",
            "5: zonesize: 2097152 bytes, where the zones of `sda` have 1048576",
        ),
        (
            &zoned,
            "[j]\nrw=write\nzonemode=zbd\ndirect=1\nbs=2m",
            "5: bs: 2097152 bytes, where a zone has 1048576",
        ),
        (
            &zoned,
            "[j]\nrw=write\nzonemode=zbd\ndirect=1\noffset=2500k\nsize=1m",
            "6: size: no whole zone of 1048576 bytes lies from byte 2560000 to byte 3608576 of the volume",
        ),
        (
            &plain,
            "[j]\nrw=write\nzonemode=zbd\ndirect=1",
            "1: zonesize: is missing: `sda` has no zones, so say the size that they are to have",
        ),
        (
            &plain,
            "[j]\nrw=write\nzonemode=zbd\ndirect=1\nzonesize=1000",
            "5: zonesize: 1000 bytes are no whole sectors (512 bytes)",
        ),
    ] {
        assert_eq!(unfit(volume, text), format!("test.fio:{wanted}"), "{text}");
    }
}

#[test]
fn random_writes_among_conventional_zones_need_no_zone_mode() {
    let file = parse("[j]\nrw=randwrite\nsize=2m\ndirect=1").expect("it can be read");
    file.build(&[volume(true)], 1).expect("conventional zones are written anywhere");
}
