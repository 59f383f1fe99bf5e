//! What the system lets the emulator and the node use. Each facility is tried out, because limits, containers and security modules may refuse
//! what files of the system say is available.

use crate::realtime;
use io_uring::IoUring;
use std::io;
use std::thread::Builder;

/// Entries of the ring that is tried: the least that the kernel accepts.
const ENTRIES: u32 = 1;

/// Sets up a ring and drops it.
///
/// *Errors:* why the system refuses io_uring: it has none (`ENOSYS`), or forbids it (`EPERM`).
pub fn try_io_uring() -> io::Result<()> {
    IoUring::new(ENTRIES).map(drop)
}

/// Whether the system allows real-time priority (`SCHED_FIFO`) as the emulator uses it. It is tried in a separate thread, so that the
/// caller's priority does not change.
pub fn try_real_time() -> bool {
    let tried = Builder::new().name("real-time".to_string()).spawn(realtime::set_realtime);
    tried.ok().and_then(|thread| thread.join().ok()).unwrap_or(false)
}
