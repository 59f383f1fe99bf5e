//! The cost of transfers between drives and memory for the host's processor.
//!
//! Modelled: with programmed I/O (PIO) the processor moves every word itself and takes an interrupt for each block of data, so
//! that the drive waits for the processor. With bus-master DMA and SCSI it sets up the scatter-gather list and takes one
//! interrupt at the end.
//!
//! *Source:* ATA/ATAPI-4 (cycle times of PIO, single-word, multiword and Ultra DMA), SCSI-2 and SCSI-3 parallel (bytes a second).

use super::processor::{ProcessorWork, WorkKind};
use headstack_model::Nanos;

#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct InterfaceCost {
    /// Time per memory segment, and its bytes; `None` if the processor moves the data itself.
    pub(crate) piece: Option<(Nanos, u64)>,
    /// Programmed transfer: the time of 2¹⁰ bytes read and written, and the number of bytes for each interrupt.
    pub(crate) read_kb: Nanos,
    pub(crate) write_kb: Nanos,
    pub(crate) block_bytes: u64,
}

impl InterfaceCost {
    /// The work to set up the list of memory segments for a command of `bytes` bytes.
    pub(super) fn list(&self, bytes: u64) -> Nanos {
        self.piece.map_or(Nanos::ZERO, |(each, size)| Nanos(each.0 * bytes.div_ceil(size)))
    }

    /// Whether the processor moves the data itself, so that it has handled the interrupt of the last block when a command ends.
    pub(super) fn is_programmed(&self) -> bool {
        self.piece.is_none()
    }

    /// The work to move `bytes` bytes, with an interrupt for each block.
    pub(super) fn words(&self, interrupt: Nanos, bytes: u64, to_host: bool) -> ProcessorWork {
        if !self.is_programmed() {
            return ProcessorWork::NONE;
        }
        let (kb, kind) =
            if to_host { (self.read_kb, WorkKind::WordRead) } else { (self.write_kb, WorkKind::WordWrite) };
        let moved = (u128::from(bytes) * u128::from(kb.0)) >> 10;
        let interrupts = Nanos(interrupt.0 * bytes.div_ceil(self.block_bytes));
        ProcessorWork::new(kind, Nanos(moved as u64)).and(WorkKind::Interrupt, interrupts)
    }
}
