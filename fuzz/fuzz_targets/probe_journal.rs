//! Journals of probes: whatever the bytes, reading ends in a journal whose whole lines alone read the same, or in an error of
//! one line. So that more than the checksums is met, the bytes are also read as lines behind a head that holds, each with the
//! checksum that it should have but those that end in an exclamation mark.

#![no_main]

use headstack_probe::journal::{Head, Journal};
use libfuzzer_sys::fuzz_target;

fn try_to_read(bytes: &[u8]) {
    match Journal::read(bytes) {
        Ok(journal) => {
            let whole = usize::try_from(journal.whole).expect("it was in memory");
            assert!(journal.fits(&journal.head).is_ok());
            // Whoever goes on writes behind these.
            assert_eq!(Journal::read(&bytes[..whole]).expect("it is whole"), journal);
        }
        Err(error) => assert_eq!(error.to_string().lines().count(), 1, "{error}"),
    }
}

fuzz_target!(|bytes: &[u8]| {
    try_to_read(bytes);
    let head = Head { shape: (17_938_986, 512, 1, 4), name: "disk".to_string(), task: "tracks".to_string() };
    let mut file = head.text().into_bytes();
    for line in bytes.split_inclusive(|byte| *byte == b'\n') {
        match line.strip_suffix(b"\n") {
            Some(told) if !told.ends_with(b"!") => {
                file.extend(told);
                file.extend(format!(" {:08x}\n", crc32fast::hash(told)).into_bytes());
            }
            _ => file.extend(line),
        }
    }
    try_to_read(&file);
});
