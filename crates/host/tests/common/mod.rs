//! What tests of emulated disks begin with.

use headstack_host::disk::{Emulator, EmulatorFaults, Store, Volume};
use headstack_model::drives;
use headstack_sim::Rig;

/// A shipped drive that keeps its bytes in memory.
pub(crate) fn emulator(drive: &str, faults: EmulatorFaults) -> Emulator {
    let rig = Rig::from_drive(drives::load(drive).expect("the drive is shipped"));
    let engine = rig.build(0).expect("the drive is good");
    let volumes = rig.volumes().into_iter().map(|info| {
        let store = Store::memory(info.bytes()).expect("unused memory is free");
        Volume::new(info, store)
    });
    Emulator::new(engine, volumes.collect(), faults).expect("a drive tells what is on its media")
}
