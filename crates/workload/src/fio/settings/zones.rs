//! How a job treats the zones of a shingled disk.

#[derive(Clone, Copy, Debug, Default)]
pub(in crate::fio) struct ZoneRules {
    /// `zonemode=zbd`.
    pub(in crate::fio) by_write_pointers: bool,
    /// Bytes of a zone; 0 for what the disk has.
    pub(in crate::fio) size: u64,
    /// The most zones written in part at a time; 0 for the limit of the disk.
    pub(in crate::fio) open_max: u64,
    /// Whether reads go where nothing was written.
    pub(in crate::fio) read_beyond: bool,
}
