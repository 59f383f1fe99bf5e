//! `zonemode=strided`: the same requests as fio's, and rules that hold for any draw.

use crate::ours::{Access, accesses, parse, run, volumes};
use crate::real::{assert_same_requests, has_fio};
use headstack_model::Nanos;

/// Jobs without random requests. The last zone of some ends beyond the file.
const EXACT: [&str; 14] = [
    "rw=read\nbs=4k\nsize=64k\nzonesize=8k\nzonerange=16k\nzoneskip=8k",
    "rw=write\nbs=4k\nsize=64k\nzonesize=8k\nzoneskip=8k",
    "rw=read\nbs=4k\nsize=64k\nzonesize=24k\nzonerange=8k\nzoneskip=8k",
    "rw=read\nbs=4k\nsize=64k\noffset=8k\nfilesize=100k\nzonesize=8k\nzonerange=16k\nzoneskip=4k",
    "rw=read\nbs=12k\nsize=96k\nzonesize=16k\nzonerange=16k\nzoneskip=8k",
    "rw=read\nbs=4k\nsize=20k\nloops=3\nzonesize=12k\nzonerange=8k\nzoneskip=4k",
    "rw=read\nbs=4k\nsize=40k\nloops=2\nzonesize=12k\nzoneskip=4k",
    "rw=read\nbs=4k\nsize=64k\nnrfiles=2\nzonesize=8k\nzoneskip=4k",
    "rw=read\nbs=4k\nsize=64k\nio_size=100k\nzonesize=8k\nzoneskip=40k",
    "rw=read\nbs=4k\nsize=32k\nzonesize=8k\nzonerange=7k\nzoneskip=0",
    // `size` is bytes to transfer: the zones continue after that many bytes of the file, and begin again at the end of the file.
    "rw=read\nbs=4k\nsize=1m\nzonesize=16k\nzonerange=64k\nzoneskip=64k",
    "rw=read\nbs=4k\nsize=256k\nfilesize=1m\nzonesize=16k\nzonerange=64k\nzoneskip=64k",
    "rw=write\nbs=4k\nsize=256k\nfilesize=1m\noffset=192k\nzonesize=16k\nzonerange=64k\nzoneskip=64k",
    "rw=read\nbs=12k\nsize=256k\nfilesize=1m\nzonesize=24k\nzonerange=64k\nzoneskip=100k",
];

#[test]
fn strided_requests_equal_fio_one_by_one() {
    if has_fio() {
        EXACT.iter().for_each(|keys| assert_same_requests(&format!("[j]\nzonemode=strided\n{keys}")));
    }
}

fn of_job(keys: &str) -> Vec<Access> {
    accesses(&format!("[j]\nbs=4k\nzonemode=strided\n{keys}"), 3).remove(0)
}

/// The zone of each request and the block in it, for zones of 64 KiB with 32 KiB between them.
fn places(all: &[Access]) -> Vec<(u64, u64)> {
    all.iter().map(|access| (access.offset / (96 << 10), access.offset % (96 << 10) / 4096)).collect()
}

#[test]
fn random_requests_meet_each_block_of_a_zone_once_before_the_next_zone() {
    let keys = "rw=randread\nsize=960k\nzonesize=64k\nzoneskip=32k";
    let found = places(&of_job(keys));
    assert_eq!(found.len(), 240);
    for (number, zone) in found.chunks(16).enumerate() {
        // The zone after the tenth is the first.
        assert!(zone.iter().all(|(found, _)| *found == number as u64 % 10), "{zone:?}");
        let mut blocks: Vec<u64> = zone.iter().map(|(_, block)| *block).collect();
        assert!(!blocks.is_sorted(), "the order is drawn");
        blocks.sort_unstable();
        assert_eq!(blocks, (0..16).collect::<Vec<_>>());
    }
}

#[test]
fn zone_is_passed_through_as_often_as_its_bytes_allow() {
    let keys = "rw=randread\nsize=960k\nzonesize=128k\nzonerange=64k\nzoneskip=32k";
    for (number, pass) in places(&of_job(keys)).chunks(16).enumerate() {
        let mut blocks: Vec<u64> = pass.iter().map(|(_, block)| *block).collect();
        blocks.sort_unstable();
        assert_eq!(blocks, (0..16).collect::<Vec<_>>());
        assert!(pass.iter().all(|(zone, _)| *zone == number as u64 / 2 % 10), "{pass:?}");
    }
    // Only a part of each zone is read.
    let part = places(&of_job("rw=read\nsize=960k\nio_size=160k\nzonesize=16k\nzonerange=64k\nzoneskip=32k"));
    let wanted: Vec<(u64, u64)> = (0..10).flat_map(|zone| (0..4).map(move |block| (zone, block))).collect();
    assert_eq!(part, wanted);
}

#[test]
fn reads_and_writes_of_a_mix_stay_in_one_zone() {
    let all = of_job("rw=randrw\nsize=960k\nzonesize=64k\nzoneskip=32k");
    for (number, zone) in places(&all).chunks(16).enumerate() {
        assert!(zone.iter().all(|(found, block)| *found == number as u64 % 10 && *block < 16), "{zone:?}");
    }
}

#[test]
fn strides_work_on_a_volume_until_the_time_is_over() {
    let text = "[j]\nfilename=sda\nrw=read\nbs=1m\nzonemode=strided\nzonesize=1m\nzoneskip=255m\nruntime=1\ntime_based";
    let mut load = parse(text).expect("it can be read").build(&volumes(), 1).expect("it fits");
    let made = run(&mut load, Nanos::from_ms(1.0), 100_000);
    assert_eq!(made.len(), 1000);
    // 1 TiB has 4096 such zones.
    assert!(made.iter().zip(0..).all(|(timed, zone)| timed.issue.request.lbn.0 == zone * (256 << 11)));
}

#[test]
fn keys_that_contradict_the_zone_mode_are_rejected_in_one_line() {
    for (text, wanted) in [
        (
            "[j]\nzonemode=strided",
            "2: zonemode: `strided` needs a `zonesize`: the bytes to transfer in a zone",
        ),
        ("[j]\nrw=read\nzonesize=1m", "3: zonesize: needs zonemode=strided or zonemode=zbd"),
        ("[j]\nzonemode=none\nzonesize=1m", "3: zonesize: needs zonemode=strided or zonemode=zbd"),
        ("[j]\nzonemode=zbd\nzonesize=1m\nzoneskip=1m", "4: zoneskip: is for zonemode=strided"),
        (
            "[j]\nrw=randread\nzonemode=strided\nzonesize=1m\nrandom_distribution=zipf:1.1",
            "5: random_distribution: is for all of a file, where zonemode=strided has a part of it at a time",
        ),
        (
            "[j]\nzonemode=strided\nzonesize=1m\nzone_reset_frequency=0.5",
            "4: zone_reset_frequency: needs zonemode=zbd: only there are zones reset",
        ),
        (
            "[j]\nzonemode=zbd\nzone_reset_frequency=2",
            "3: zone_reset_frequency: `2`, where a share from 0 to 1 is allowed",
        ),
        (
            "[j]\nzonemode=stride",
            "2: zonemode: `stride`, where none, strided, zbd is allowed; did you mean `strided`?",
        ),
    ] {
        assert_eq!(parse(text).expect_err(text).to_string(), format!("test.fio:{wanted}"));
    }
}
