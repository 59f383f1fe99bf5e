//! A rig file and what is set over it: whatever the bytes, reading ends in a rig or in an error of one line. A rig that was
//! read is written out whole and read again unchanged. Lines behind a form feed are settings, `PATH=VALUE`.

#![no_main]

use headstack_model::drives;
use headstack_sim::rig::Rig;
use libfuzzer_sys::fuzz_target;

/// Drives that a rig may hold here, so that building it takes no time.
const DRIVES_MAX: u32 = 64;

fuzz_target!(|text: &str| {
    let (file, settings) = text.split_once('\x0c').unwrap_or((text, ""));
    let mut rig = match Rig::parse(file, "fuzz.toml", &mut |name| drives::load(name)) {
        Ok(rig) => rig,
        Err(error) => return assert_eq!(error.to_string().lines().count(), 1),
    };
    for (path, value) in settings.lines().take(16).filter_map(|line| line.split_once('=')) {
        let before = rig.resolved().clone();
        if let Err(error) = rig.set(path, value) {
            assert_eq!(error.to_string().lines().count(), 1);
            assert_eq!(*rig.resolved(), before);
        }
    }
    let again = Rig::parse(&rig.to_toml(), "again.toml", &mut |name| panic!("asked for {name}"));
    assert_eq!(again.expect("a rig that was written can be read").volumes(), rig.volumes());
    if rig.resolved().drive.iter().map(|group| group.keys.count).sum::<u32>() <= DRIVES_MAX
        && let Err(error) = rig.build(1)
    {
        assert_eq!(error.to_string().lines().count(), 1);
    }
});
