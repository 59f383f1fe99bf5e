//! Bytes of files.

/// Bytes of a file, absolute in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Run {
    pub(super) offset: u64,
    pub(super) bytes: u64,
    /// Whether the zone of a write is reset before it, although it is not full.
    pub(super) resets_zone: bool,
}

/// A file's extent as the layout found it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Extent {
    pub(super) volume: u32,
    pub(super) base: u64,
    pub(super) start: u64,
    pub(super) reach: u64,
    pub(super) end: u64,
    pub(super) sector: u64,
}
