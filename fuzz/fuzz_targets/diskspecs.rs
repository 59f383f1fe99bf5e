//! DiskSim's parameter files: whatever the bytes, the import ends in a drive that keeps the rules of drive files, or in an
//! error of one line. The input is cut at form feeds into the file itself and those that it names, in the order in which they
//! are asked for.

#![no_main]

use headstack_disksim::import;
use headstack_model::DriveSpec;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    let mut files = text.split('\x0c');
    let first = files.next().unwrap_or("");
    let result = import(first, "first", |_| files.next().map(str::to_string).ok_or("no more files".to_string()));
    match result {
        Ok(imported) => {
            let written = imported.spec.to_toml();
            let again =
                DriveSpec::parse(&written, "again.toml").expect("an imported drive can be written and read");
            assert_eq!(again, imported.spec);
        }
        Err(error) => assert_eq!(error.to_string().lines().count(), 1),
    }
});
