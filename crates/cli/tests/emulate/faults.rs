//! Drives with bad or slow blocks and drives that die, seen by a client.

use crate::emulator::{Emulator, Setup};
use crate::tools::wait_for;

fn emulator<'a>(rig: &'a str, fault: &'a str) -> Emulator {
    Emulator::start(&Setup { rig, fault: Some(fault), ..Setup::default() })
}

#[test]
fn written_bad_blocks_become_readable() {
    let emulator = emulator("wd800jd", "medium-error@1000+8");
    let mut client = emulator.client();
    let bad = 1000 * 512;
    assert!(client.read(bad - 4096, 4096).is_ok(), "the blocks before are good");
    for place in [bad, bad - 512, bad + 7 * 512] {
        assert!(client.read(place, 4096).is_err(), "a read that touches a bad block fails: {place}");
    }
    assert!(client.read(bad + 4096, 4096).is_ok(), "the blocks behind are good");
    client.write(bad, &[7; 4096], true).expect("a write moves them to spares");
    assert_eq!(client.read(bad, 4096).expect("they are good again"), [7; 4096]);
}

#[test]
fn slow_blocks_keep_their_data() {
    let emulator = emulator("wd800jd", "disk0:slow@1000+8:20");
    let mut client = emulator.client();
    client.write(1000 * 512, &[5; 4096], true).expect("it is slow, and good");
    assert_eq!(client.read(1000 * 512, 4096).expect("it is slow, and good"), [5; 4096]);
}

#[test]
fn dead_disk_rejects_every_command() {
    let emulator = emulator("wd800jd", "dead@1s");
    let mut client = emulator.client();
    wait_for("the disk dies", || client.read(0, 512).is_err().then_some(()));
    assert!(client.write(0, &[1; 512], false).is_err() && client.flush().is_err());
}

#[test]
fn array_serves_its_data_after_a_drive_has_died() {
    let emulator = emulator("raid5", "data0:dead@100ms");
    let mut client = emulator.client();
    let block = |number: u64| vec![number as u8 + 1; 65_536];
    for number in 0..24 {
        client.write(number << 16, &block(number), true).expect("all drives are there, or all but one");
    }
    for number in 0..24 {
        assert_eq!(client.read(number << 16, 65_536).expect("the others have it"), block(number));
    }
    client.write(0, &block(77), true).expect("the others take it");
    assert_eq!(client.read(0, 65_536).expect("the others have it"), block(77));
}

#[test]
fn array_fails_requests_once_it_has_lost_more_than_it_survives() {
    let emulator = emulator("raid5", "dead@1s");
    let mut client = emulator.client();
    wait_for("the disks die", || client.read(0, 65_536).is_err().then_some(()));
}

#[test]
fn fault_of_one_drive_does_not_affect_another() {
    let emulator = emulator("node", "data1:medium-error@0+1000");
    assert!(emulator.client().read(0, 4096).is_ok(), "the first disk is data0");
}

#[test]
fn faults_are_set_and_cleared_while_the_disk_runs() {
    let emulator = Emulator::start(&Setup { rig: "wd800jd", ..Setup::default() });
    let mut client = emulator.client();
    client.write(0, &[7; 4096], true).expect("no fault is set");
    assert_eq!(emulator.fault("fail writes blocks=0+8"), Ok("ok: fault 1".to_string()));
    assert!(client.write(0, &[8; 4096], true).is_err() && client.write(1 << 20, &[8; 4096], true).is_ok());
    assert_eq!(client.read(0, 4096).expect("only writes fail"), [7; 4096]);
    assert_eq!(emulator.fault("fail reads nth=2"), Ok("ok: fault 2".to_string()));
    assert!(client.read(0, 4096).is_ok() && client.read(0, 4096).is_err() && client.read(0, 4096).is_ok());
    assert_eq!(emulator.fault("list"), Ok("ok: 1 fail writes disk=disk0 blocks=0+8".to_string()));
    assert_eq!(emulator.fault("gone"), Ok("ok: fault 3".to_string()));
    assert!(client.read(0, 4096).is_err());
    assert_eq!(emulator.fault("back"), Ok("ok: back".to_string()));
    assert_eq!(client.read(0, 4096).expect("it is back"), [7; 4096]);
    assert_eq!(emulator.fault("corrupt reads blocks=1"), Ok("ok: fault 4".to_string()));
    let mut expected = [7; 4096];
    expected[512] = 6;
    assert_eq!(client.read(0, 4096).expect("it is silent"), expected);
    assert_eq!(emulator.fault("clear"), Ok("ok: 2 cleared".to_string()));
    assert!(client.write(0, &[8; 4096], true).is_ok());
    assert_eq!(emulator.fault("list"), Ok("ok: none".to_string()));
    for (command, error) in [
        ("fial writes", "did you mean `fail`?"),
        ("fail head=99", "disk0: it has no head 99"),
        ("fail disk=dsk0", "did you mean `disk0`?"),
        ("fail blocks=999999999999", "are outside its 0 to 156301488"),
        ("clear 9", "there is no fault 9"),
        ("back", "no such disk is gone"),
    ] {
        let said = emulator.fault(command).expect_err("it is refused");
        assert!(said.contains(error), "{command}: {said}");
    }
}

#[test]
fn reads_under_a_failed_head_fail() {
    let emulator = emulator("wd800jd", "medium-error@head=0");
    let mut client = emulator.client();
    let failed = (0..40_u64).filter(|step| client.read(step * 1_900_000_768, 4096).is_err()).count();
    assert!((1..39).contains(&failed), "{failed} of 40");
    client.write(0, &[1; 4096], false).expect("only reads fail");
}
