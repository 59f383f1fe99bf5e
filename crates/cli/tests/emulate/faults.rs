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
fn fault_of_one_drive_does_not_affect_another() {
    let emulator = emulator("node", "data1:medium-error@0+1000");
    assert!(emulator.client().read(0, 4096).is_ok(), "the first disk is data0");
}
