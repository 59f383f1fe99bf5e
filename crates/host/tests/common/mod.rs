//! What tests of emulated disks begin with.

use headstack_host::disk::{Emulator, EmulatorFaults, Store, Volume};
use headstack_sim::rig::shipped;

/// A shipped drive or rig that keeps its bytes in memory.
pub(crate) fn emulator(name: &str, faults: EmulatorFaults) -> Emulator {
    let rig = shipped::load(name).expect("it is shipped");
    let engine = rig.build(0).expect("it is good");
    let volumes = rig.volumes().into_iter().map(|info| {
        let store = Store::memory(info.bytes()).expect("unused memory is free");
        Volume::new(info, store)
    });
    Emulator::new(engine, volumes.collect(), faults).expect("a drive tells what is on its media")
}
