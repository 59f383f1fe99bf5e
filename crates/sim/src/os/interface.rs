//! `[host.interface]` of a rig: how data come to the host's memory, and what that costs its processor.
//!
//! *Source:* cycle times of ATA/ATAPI-4 (PIO, single-word, multiword and Ultra DMA) and of SCSI-2 and SCSI-3 parallel buses. The
//! study of disk performance optimization prints 11.4 MB/s for PIO mode 4, which moves 16.7 (11.1 is mode 3, which it
//! leaves out), and 33.3 for a multiword DMA mode 3, which is Ultra DMA mode 2; here the standards count.

use super::HostError;
use crate::link::InterfaceCost;
use headstack_model::Nanos;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The transfer modes between drive and memory, by the rate of a word of two bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum InterfaceKind {
    /// Programmed I/O, mode 0: 3.3 MB/s.
    #[serde(rename = "pio-0")]
    Pio0,
    /// Programmed I/O, mode 1: 5.2 MB/s.
    #[serde(rename = "pio-1")]
    Pio1,
    /// Programmed I/O, mode 2: 8.3 MB/s.
    #[serde(rename = "pio-2")]
    Pio2,
    /// Programmed I/O, mode 3: 11.1 MB/s.
    #[serde(rename = "pio-3")]
    Pio3,
    /// Programmed I/O, mode 4: 16.7 MB/s.
    #[serde(rename = "pio-4")]
    Pio4,
    /// Single-word DMA, mode 0: 2.1 MB/s.
    #[serde(rename = "single-word-dma-0")]
    SingleWordDma0,
    /// Single-word DMA, mode 1: 4.2 MB/s.
    #[serde(rename = "single-word-dma-1")]
    SingleWordDma1,
    /// Single-word DMA, mode 2: 8.3 MB/s.
    #[serde(rename = "single-word-dma-2")]
    SingleWordDma2,
    /// Multiword DMA, mode 0: 4.2 MB/s.
    #[serde(rename = "multiword-dma-0")]
    MultiwordDma0,
    /// Multiword DMA, mode 1: 13.3 MB/s.
    #[serde(rename = "multiword-dma-1")]
    MultiwordDma1,
    /// Multiword DMA, mode 2: 16.7 MB/s.
    #[serde(rename = "multiword-dma-2")]
    MultiwordDma2,
    /// Ultra DMA, mode 0: 16.7 MB/s.
    #[serde(rename = "ultra-dma-0")]
    UltraDma0,
    /// Ultra DMA, mode 1: 25 MB/s.
    #[serde(rename = "ultra-dma-1")]
    UltraDma1,
    /// Ultra DMA, mode 2: 33.3 MB/s.
    #[serde(rename = "ultra-dma-2")]
    UltraDma2,
    /// Ultra DMA, mode 4: 66.7 MB/s.
    #[serde(rename = "ultra-dma-4")]
    UltraDma4,
    /// Ultra DMA, mode 5: 100 MB/s.
    #[serde(rename = "ultra-dma-5")]
    UltraDma5,
    /// SCSI on 8 bits: 5 MB/s.
    Scsi,
    /// Fast SCSI on 8 bits: 10 MB/s.
    FastScsi,
    /// Ultra SCSI on 8 bits: 20 MB/s.
    UltraScsi,
    /// SCSI on 16 bits: 10 MB/s.
    WideScsi,
    /// Fast SCSI on 16 bits: 20 MB/s.
    FastWideScsi,
    /// Ultra SCSI on 16 bits: 40 MB/s.
    UltraWideScsi,
}

impl InterfaceKind {
    /// Time of two bytes, in ns.
    fn word_ns(self) -> u32 {
        use InterfaceKind::*;
        match self {
            Pio0 => 600,
            Pio1 => 383,
            Pio2 => 240,
            Pio3 => 180,
            Pio4 => 120,
            SingleWordDma0 => 960,
            SingleWordDma1 => 480,
            SingleWordDma2 => 240,
            MultiwordDma0 => 480,
            MultiwordDma1 => 150,
            MultiwordDma2 | UltraDma0 => 120,
            UltraDma1 => 80,
            UltraDma2 => 60,
            UltraDma4 => 30,
            UltraDma5 => 20,
            Scsi => 400,
            FastScsi | WideScsi => 200,
            UltraScsi | FastWideScsi => 100,
            UltraWideScsi => 50,
        }
    }

    /// Whether the processor moves every word.
    fn is_programmed(self) -> bool {
        use InterfaceKind::*;
        matches!(self, Pio0 | Pio1 | Pio2 | Pio3 | Pio4)
    }
}

/// `[host.interface]`: how data reach the host's memory, at the rate of the transfer mode at most, and their cost for the host's
/// one processor. With programmed I/O the processor moves each word and the drive waits for it; with DMA it takes one interrupt
/// per command.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct InterfaceSpec {
    /// The transfer mode.
    pub kind: InterfaceKind,
    /// Processor time for each command. Default: 10 (assumption).
    #[serde(default = "ten")]
    pub command_us: f64,
    /// Processor time for each interrupt. Default: 5 (assumption).
    #[serde(default = "five")]
    pub interrupt_us: f64,
    /// Processor time for a word of two bytes in addition to the cycle in which it waits for the drive, with programmed I/O.
    /// Default: 0 (assumption).
    #[serde(default)]
    pub word_us: f64,
    /// Bytes per interrupt, with programmed I/O. Default: 512 (ATA without READ MULTIPLE).
    #[serde(default = "sector")]
    pub block_bytes: u32,
    /// Processor time for each segment of memory in the scatter-gather list of a transfer, with DMA. Default: 0 (assumption).
    #[serde(default)]
    pub piece_us: f64,
    /// Bytes of such a segment. Default: 4096 (a page).
    #[serde(default = "page")]
    pub piece_bytes: u32,
}

fn ten() -> f64 {
    10.0
}

fn five() -> f64 {
    5.0
}

fn sector() -> u32 {
    512
}

fn page() -> u32 {
    4096
}

impl InterfaceSpec {
    pub(super) fn check(&self) -> Result<(), HostError> {
        let times = [
            ("command_us", self.command_us),
            ("interrupt_us", self.interrupt_us),
            ("word_us", self.word_us),
            ("piece_us", self.piece_us),
        ];
        for (key, value) in times {
            if !(0.0..=1e6).contains(&value) {
                let message = format!("{value} us is outside 0 to 1000000 us");
                return Err(HostError::new(&format!("interface.{key}"), message));
            }
        }
        for (key, value) in [("block_bytes", self.block_bytes), ("piece_bytes", self.piece_bytes)] {
            if value == 0 {
                return Err(HostError::new(&format!("interface.{key}"), "0 is outside 1 to 4294967295"));
            }
        }
        let misplaced = match self.kind.is_programmed() {
            true => (self.piece_us > 0.0).then_some(("piece_us", "is for DMA and SCSI")),
            false => {
                (self.word_us > 0.0).then_some(("word_us", "is for programmed transfer (`pio-0` to `pio-4`)"))
            }
        };
        match misplaced {
            Some((key, message)) => Err(HostError::new(&format!("interface.{key}"), message)),
            None => Ok(()),
        }
    }

    /// Time of 2¹⁰ bytes in the transfer mode.
    fn kb_ns(&self) -> f64 {
        512.0 * (f64::from(self.kind.word_ns()) + self.word_us * 1e3)
    }

    /// Shortest time of a sector.
    pub(crate) fn us_per_sector(&self, sector_bytes: u32) -> f64 {
        let sector = f64::from(sector_bytes);
        let interrupts = match self.kind.is_programmed() {
            true => self.interrupt_us * sector / f64::from(self.block_bytes),
            false => 0.0,
        };
        self.kb_ns() * sector / 1024.0 / 1e3 + interrupts
    }

    pub(crate) fn cost(&self) -> InterfaceCost {
        let piece = (Nanos::from_us(self.piece_us), u64::from(self.piece_bytes));
        InterfaceCost {
            command: Nanos::from_us(self.command_us),
            piece: (!self.kind.is_programmed()).then_some(piece),
            interrupt: Nanos::from_us(self.interrupt_us),
            kb: Nanos(self.kb_ns().round() as u64),
            block_bytes: u64::from(self.block_bytes),
        }
    }
}
