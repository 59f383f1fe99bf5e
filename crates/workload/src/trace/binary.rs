//! Records of fixed size in the formats that are binary.

use std::io::{ErrorKind, Read};

use super::error::Fault;

/// Fills `bytes[from..to]` and returns `bytes[..to]`; `None` if the input ends before a record's first byte.
///
/// *Errors:* the input ends within a record.
pub(super) fn read_part<'a>(
    input: &mut impl Read,
    bytes: &'a mut [u8],
    from: usize,
    to: usize,
) -> Result<Option<&'a [u8]>, Fault> {
    let mut found = from;
    while found < to {
        match input.read(&mut bytes[found..to]) {
            Ok(0) if found == 0 => return Ok(None),
            Ok(0) => return Err(Fault::Truncated { found, wanted: to }),
            Ok(more) => found += more,
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(Fault::Unreadable(error)),
        }
    }
    Ok(Some(&bytes[..to]))
}
