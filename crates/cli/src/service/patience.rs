//! A short wait for a disk that another program has just left.

use std::io;
use std::time::Duration;

/// Opens a disk. Waits briefly for one in use, until `is_end_requested`, because the system may release a disk only some moments after a
/// program has ended.
///
/// *Errors:* those of `open`.
pub(crate) fn when_free<T>(
    is_end_requested: &dyn Fn() -> bool,
    mut open: impl FnMut() -> io::Result<T>,
) -> io::Result<T> {
    const TRIES: u32 = 40;
    let mut tries = 0;
    loop {
        match open() {
            Err(error)
                if error.kind() == io::ErrorKind::ResourceBusy && tries < TRIES && !is_end_requested() =>
            {
                tries += 1;
                #[allow(clippy::disallowed_methods, reason = "no event reports that a lock is free")]
                std::thread::sleep(Duration::from_millis(50));
            }
            opened => return opened,
        }
    }
}
