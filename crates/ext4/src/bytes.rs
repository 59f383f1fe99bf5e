//! Little-endian numbers of the format, its checksum, and access to the file.

use crate::error::FormatError;
use std::fs::File;
use std::os::unix::fs::FileExt;

/// Checksum of `bytes` that continues `seed`: CRC-32C without the final inversion.
pub(crate) fn checksum(seed: u32, bytes: &[u8]) -> u32 {
    !crc32c::crc32c_append(!seed, bytes)
}

pub(crate) fn read_u32(bytes: &[u8], offset: usize) -> u32 {
    u32::from_le_bytes(bytes[offset..offset + 4].try_into().expect("four bytes"))
}

pub(crate) fn read_u16(bytes: &[u8], offset: usize) -> u16 {
    u16::from_le_bytes(bytes[offset..offset + 2].try_into().expect("two bytes"))
}

pub(crate) fn put_u32(bytes: &mut [u8], offset: usize, value: u32) {
    bytes[offset..offset + 4].copy_from_slice(&value.to_le_bytes());
}

pub(crate) fn put_u16(bytes: &mut [u8], offset: usize, value: u16) {
    bytes[offset..offset + 2].copy_from_slice(&value.to_le_bytes());
}

pub(crate) fn read_at(file: &File, bytes: &mut [u8], offset: u64) -> Result<(), FormatError> {
    file.read_exact_at(bytes, offset).map_err(FormatError::File)
}

pub(crate) fn write_at(file: &File, bytes: &[u8], offset: u64) -> Result<(), FormatError> {
    file.write_all_at(bytes, offset).map_err(FormatError::File)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn checksum_is_crc32c_without_the_last_inversion() {
        // The check value of CRC-32C is 0xE3069283; the format omits the final inversion.
        assert_eq!(!checksum(!0, b"123456789"), 0xE306_9283);
        assert_eq!(checksum(checksum(!0, b"1234"), b"56789"), checksum(!0, b"123456789"));
    }
}
