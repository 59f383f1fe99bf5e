//! The processor's cost of transfers.
//!
//! Modelled: one processor, which spends some time on each command. With programmed I/O (PIO) it moves every word itself and takes
//! an interrupt for each block of data, so that the drive waits for the processor. With bus-master DMA and SCSI it sets up the
//! scatter-gather list and takes one interrupt at the end. Not modelled: computations of programs, and copies of the page cache.
//!
//! *Source:* ATA/ATAPI-4 (cycle times of PIO, single-word, multiword and Ultra DMA), SCSI-2 and SCSI-3 parallel (bytes a second).

use super::lane::{Flow, Lane};
use headstack_model::Nanos;

#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct InterfaceCost {
    pub(crate) command: Nanos,
    /// Time per memory segment, and its bytes; `None` if the processor moves the data itself.
    pub(crate) piece: Option<(Nanos, u64)>,
    pub(crate) interrupt: Nanos,
    /// Of programmed transfer: for 2¹⁰ bytes, and the bytes that it moves for an interrupt.
    pub(crate) kb: Nanos,
    pub(crate) block_bytes: u64,
}

/// The host's processor and its costs for transfers.
#[derive(Clone, Debug)]
pub(crate) struct Interface {
    cost: InterfaceCost,
    processor: Lane,
}

impl Interface {
    pub(crate) fn new(cost: InterfaceCost) -> Interface {
        Interface { cost, processor: Lane::new(1_000_000_000) }
    }

    /// Gives the processor something to do from a time on; tells when it is done.
    fn work(&mut self, now: Nanos, begins: Nanos, least: Nanos, work: Nanos) -> Nanos {
        self.processor.take(now, Flow { begins, least, units: work.0 })
    }

    /// When the processor has given a command.
    pub(crate) fn command(&mut self, now: Nanos, bytes: u64) -> Nanos {
        let pieces = self.cost.piece.map_or(0, |(each, size)| each.0 * bytes.div_ceil(size));
        self.work(now, now, Nanos::ZERO, Nanos(self.cost.command.0 + pieces))
    }

    /// When data that come and go from `begins` on, over `least` at least, have been moved.
    pub(crate) fn transfer(&mut self, now: Nanos, begins: Nanos, least: Nanos, bytes: u64) -> Nanos {
        match self.cost.piece {
            Some(_) => begins + least,
            None => {
                let interrupts = self.cost.interrupt.0 * bytes.div_ceil(self.cost.block_bytes);
                let moved = (u128::from(bytes) * u128::from(self.cost.kb.0)) >> 10;
                self.work(now, begins, least, Nanos(interrupts + moved as u64))
            }
        }
    }

    /// When the processor knows that a command that ends at `at` is done.
    pub(crate) fn report(&mut self, now: Nanos, at: Nanos) -> Nanos {
        match self.cost.piece {
            Some(_) => self.work(now, at, Nanos::ZERO, self.cost.interrupt),
            // It was there for the last block.
            None => at,
        }
    }

    pub(crate) fn busy(&self) -> Nanos {
        self.processor.busy()
    }
}
