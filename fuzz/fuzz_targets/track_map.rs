//! Track maps: whatever the bytes, reading ends in a map that its own file gives back, or in an error of one line. So that
//! more than the checksum is met, the bytes are also read as the contents of a file whose head and checksum hold.

#![no_main]

use headstack_tracks::map;
use libfuzzer_sys::fuzz_target;

fn try_to_read(bytes: &[u8]) {
    match map::read(&mut &*bytes) {
        Ok((identity, tracks)) => {
            let mut again = Vec::new();
            map::write(&mut again, &identity, &tracks).expect("memory takes it");
            assert_eq!(map::read(&mut &again[..]).expect("it was written"), (identity, tracks));
        }
        Err(error) => assert_eq!(error.to_string().lines().count(), 1),
    }
}

fuzz_target!(|bytes: &[u8]| {
    try_to_read(bytes);
    let mut file = b"\x89HSTRK\r\n".to_vec();
    file.extend_from_slice(&1u32.to_le_bytes());
    file.extend_from_slice(&(bytes.len() as u64 + 24).to_le_bytes());
    file.extend_from_slice(bytes);
    let checksum = crc32fast::hash(&file);
    file.extend_from_slice(&checksum.to_le_bytes());
    try_to_read(&file);
    if let Err(error) = map::read_text(bytes) {
        assert_eq!(error.to_string().lines().count(), 1);
    }
});
