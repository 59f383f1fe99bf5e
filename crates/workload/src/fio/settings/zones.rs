//! How a job treats zones: those of a shingled disk, or strides in any file.

use crate::fio::value::{Amount, Given, Parsed};

/// `zonemode`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(in crate::fio) enum ZoneMode {
    #[default]
    None,
    /// Requests go from one part of the file to the next.
    Strided,
    /// `zbd`: by the write pointers of zones.
    ByWritePointers,
}

impl ZoneMode {
    pub(in crate::fio) fn read(given: &Given<'_>) -> Parsed<ZoneMode> {
        given.word(&[
            ("none", ZoneMode::None),
            ("strided", ZoneMode::Strided),
            ("zbd", ZoneMode::ByWritePointers),
        ])
    }
}

#[derive(Clone, Copy, Debug, Default)]
pub(in crate::fio) struct ZoneRules {
    pub(in crate::fio) mode: ZoneMode,
    /// Bytes of a zone, 0 for the disk's own; of a stride, bytes to transfer in one.
    pub(in crate::fio) size: u64,
    /// Bytes of a zone of a stride; 0 for `size`.
    pub(in crate::fio) range: u64,
    /// Bytes between two zones of a stride.
    pub(in crate::fio) skip: Amount,
    /// The most zones written in part at a time; 0 for the limit of the disk.
    pub(in crate::fio) open_max: u64,
    /// Whether reads may go where nothing was written.
    pub(in crate::fio) read_beyond: bool,
    pub(in crate::fio) resets: ZoneResets,
}

/// When a write resets its zone although that is not full.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(in crate::fio) struct ZoneResets {
    /// Resets per write; 0 for none.
    pub(in crate::fio) frequency: f64,
    /// Share of the job's bytes that must be written.
    pub(in crate::fio) threshold: f64,
}
