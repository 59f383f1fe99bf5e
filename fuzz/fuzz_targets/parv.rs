//! DiskSim's set-ups: whatever the bytes, the import ends in a rig and a load that hold, or in an error of one line. The input
//! is cut at form feeds into the file itself and those that it names, in the order in which they are asked for.

#![no_main]

use headstack_disksim::rig::import;
use headstack_model::drives;
use headstack_sim::rig::Rig;
use headstack_personalities::LoadFile;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    let mut files = text.split('\x0c');
    let first = files.next().unwrap_or("");
    match import(first, "first", |_| files.next().map(str::to_string).ok_or("no more files".to_string())) {
        Ok(imported) => {
            let rig = Rig::parse(&imported.rig, "again.toml", &mut |name| drives::load(name));
            let rig = rig.expect("an imported rig can be read");
            if let Some(load) = imported.load {
                let load = LoadFile::parse(&load, "again.toml").expect("an imported load can be read");
                let _ = load.build(&rig.volumes(), 1);
            }
        }
        Err(error) => assert_eq!(error.to_string().lines().count(), 1),
    }
});
