//! `[host.interface]` of a rig: how data reach the host's memory.
//!
//! *Source:* cycle times of ATA/ATAPI-4 (PIO, single-word, multiword and Ultra DMA) and of SCSI-2 and SCSI-3 parallel buses. The
//! study of disk performance optimization prints 11.4 MB/s for PIO mode 4, which moves 16.7 (11.1 is mode 3, which it
//! leaves out), and 33.3 for a multiword DMA mode 3, which is Ultra DMA mode 2; here the standards count.

use super::host_fault;
use super::processor::ProcessorSpec;
use headstack_model::spec::Fault;
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

    /// Rate in MB/s (10⁶ bytes).
    pub fn mb_s(self) -> f64 {
        2e3 / f64::from(self.word_ns())
    }

    /// Whether the processor moves every word.
    pub(super) fn is_programmed(self) -> bool {
        use InterfaceKind::*;
        matches!(self, Pio0 | Pio1 | Pio2 | Pio3 | Pio4)
    }
}

/// `[host.interface]`: how data reach the host's memory, at the rate of the transfer mode at most. With programmed I/O the
/// processor moves each word and the drive waits for it; with DMA it takes one interrupt per command. `[host.processor]` has the
/// processor's times.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct InterfaceSpec {
    /// The transfer mode.
    pub kind: InterfaceKind,
    /// Older name of `host.processor.submit_us`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0.0, max = 1e6))]
    pub command_us: Option<f64>,
    /// Older name of `host.processor.interrupt_us`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0.0, max = 1e6))]
    pub interrupt_us: Option<f64>,
    /// Older name of `host.processor.word_read_us` and `word_write_us` together.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0.0, max = 1e6))]
    pub word_us: Option<f64>,
    /// Bytes per interrupt, with programmed I/O. Default: 512 (ATA without READ MULTIPLE).
    #[serde(default = "sector")]
    #[schemars(range(min = 1))]
    pub block_bytes: u32,
    /// Processor time for each segment of memory in the scatter-gather list of a transfer, with DMA. Default: 0 (assumption).
    #[serde(default)]
    #[schemars(range(min = 0.0, max = 1e6))]
    pub piece_us: f64,
    /// Bytes of such a segment. Default: 4096 (a page).
    #[serde(default = "page")]
    #[schemars(range(min = 1))]
    pub piece_bytes: u32,
}

fn sector() -> u32 {
    512
}

fn page() -> u32 {
    4096
}

impl InterfaceSpec {
    pub(super) fn check(&self, processor: Option<&ProcessorSpec>) -> Result<(), Fault> {
        let is_programmed = self.kind.is_programmed();
        if is_programmed && self.piece_us > 0.0 {
            return Err(host_fault("interface.piece_us", "is for DMA and SCSI"));
        }
        if !is_programmed && self.word_us.is_some_and(|us| us > 0.0) {
            let message = "is for programmed transfer (`pio-0` to `pio-4`)";
            return Err(host_fault("interface.word_us", message));
        }
        self.check_older(processor)
    }

    /// Checks that no time is given by both its present and its older name.
    fn check_older(&self, processor: Option<&ProcessorSpec>) -> Result<(), Fault> {
        let Some(given) = processor else { return Ok(()) };
        let pairs = [
            ("command_us", self.command_us, "submit_us", given.submit_us),
            ("interrupt_us", self.interrupt_us, "interrupt_us", given.interrupt_us),
            ("word_us", self.word_us, "word_read_us", given.word_read_us),
            ("word_us", self.word_us, "word_write_us", given.word_write_us),
        ];
        match pairs.iter().find(|(_, older, _, newer)| older.is_some() && newer.is_some()) {
            Some((older, _, newer, _)) => {
                let message = format!("is the older name of host.processor.{newer}, which is given too");
                Err(host_fault(&format!("interface.{older}"), message))
            }
            None => Ok(()),
        }
    }

    /// Time of 2¹⁰ bytes in the transfer mode, with `word_us` added for each word.
    pub(super) fn kb_ns(&self, word_us: f64) -> f64 {
        512.0 * (f64::from(self.kind.word_ns()) + word_us * 1e3)
    }
}

#[cfg(test)]
mod tests {
    use super::InterfaceKind::*;
    use super::*;

    /// Each mode with the standard's rate in MB/s, and the rate that the study of disk performance optimization prints.
    const PROTOCOLS: [(InterfaceKind, f64, Option<f64>); 22] = [
        (Pio0, 3.3, Some(3.3)),
        (Pio1, 5.2, Some(5.2)),
        (Pio2, 8.3, Some(8.3)),
        (Pio3, 11.1, None),
        // 11.4 is a print error.
        (Pio4, 16.7, Some(11.4)),
        (SingleWordDma0, 2.1, Some(2.1)),
        (SingleWordDma1, 4.2, Some(4.2)),
        (SingleWordDma2, 8.3, Some(8.3)),
        (MultiwordDma0, 4.2, Some(4.2)),
        (MultiwordDma1, 13.3, Some(13.3)),
        (MultiwordDma2, 16.7, Some(16.6)),
        (UltraDma0, 16.7, None),
        (UltraDma1, 25.0, None),
        // Printed as multiword DMA mode 3.
        (UltraDma2, 33.3, Some(33.3)),
        (UltraDma4, 66.7, None),
        (UltraDma5, 100.0, None),
        (Scsi, 5.0, Some(5.0)),
        (FastScsi, 10.0, Some(10.0)),
        (UltraScsi, 20.0, Some(20.0)),
        (WideScsi, 10.0, Some(10.0)),
        (FastWideScsi, 20.0, Some(20.0)),
        (UltraWideScsi, 40.0, Some(40.0)),
    ];

    #[test]
    fn every_protocol_has_the_rate_of_its_standard() {
        for (kind, standard, printed) in PROTOCOLS {
            let mb_s = kind.mb_s();
            assert!((mb_s / standard - 1.0).abs() < 0.02, "{kind:?}: {mb_s} and {standard} MB/s");
            let is_as_printed = printed.is_none_or(|printed| (mb_s / printed - 1.0).abs() < 0.02);
            assert_eq!(is_as_printed, kind != Pio4, "{kind:?}: {mb_s} MB/s, printed {printed:?}");
        }
    }
}
