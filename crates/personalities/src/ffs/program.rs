//! Calls of programs on a file system.

use headstack_model::Nanos;

/// The number that a program gives a file.
pub type Handle = u32;

/// A call of a program. The next one is made when it has returned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Call {
    /// Looks up the name of a file, and reads its inode; a session of reading begins.
    Open(Handle),
    /// Makes an empty file, with its name in directory 0.
    Create(Handle),
    /// Makes an empty file in the directory of this number.
    CreateIn(Handle, u32),
    /// Reads a block of a file, counted from 0.
    Read(Handle, u32),
    /// Appends this number of bytes to a file.
    Append(Handle, u64),
    /// Ends a session: unwritten data are written half a minute later.
    Close(Handle),
    /// Removes a file and its name.
    Delete(Handle),
    /// Waits for this long.
    Pause(Nanos),
    /// Records the time.
    Mark,
}
