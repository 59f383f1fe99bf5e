//! A drive file: whatever the bytes, reading ends in a drive or in an error of one line. A drive that was read is written
//! and read again unchanged, and its layout and mechanics can be built.

#![no_main]

use headstack_model::{DriveSpec, Geometry, Lbn, Mechanics};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    let spec = match DriveSpec::parse(text, "fuzz.toml") {
        Ok(spec) => spec,
        Err(error) => return assert_eq!(error.to_string().lines().count(), 1),
    };
    let again =
        DriveSpec::parse(&spec.to_toml(), "again.toml").expect("a drive that was written can be read");
    assert_eq!(again, spec);
    let geometry = Geometry::new(&spec).expect("a drive that was read can be built");
    for lbn in [0, geometry.sectors() / 2, geometry.sectors() - 1] {
        let extent = geometry.extent_at(Lbn(lbn));
        assert!(extent.first.0 <= lbn && lbn < extent.first.0 + u64::from(extent.sectors));
    }
    let _ = Mechanics::new(&spec);
});
