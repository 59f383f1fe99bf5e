//! What the study prints without an experiment: protocol rates, rotational latency, and the layout of a file system.

use crate::judge::Measured;
use crate::study::Findings;
use headstack_personalities::ext2::Ext2Shape;
use headstack_sim::os::InterfaceKind;

/// Protocols of Tables 1 and 2, by the keys of their rows. What the study prints as multiword DMA mode 3 is Ultra DMA mode 2.
const PROTOCOLS: [(&str, InterfaceKind); 17] = [
    ("pio-0", InterfaceKind::Pio0),
    ("pio-1", InterfaceKind::Pio1),
    ("pio-2", InterfaceKind::Pio2),
    ("pio-4", InterfaceKind::Pio4),
    ("single-word-0", InterfaceKind::SingleWordDma0),
    ("single-word-1", InterfaceKind::SingleWordDma1),
    ("single-word-2", InterfaceKind::SingleWordDma2),
    ("multiword-0", InterfaceKind::MultiwordDma0),
    ("multiword-1", InterfaceKind::MultiwordDma1),
    ("multiword-2", InterfaceKind::MultiwordDma2),
    ("multiword-3", InterfaceKind::UltraDma2),
    ("scsi", InterfaceKind::Scsi),
    ("fast-scsi", InterfaceKind::FastScsi),
    ("ultra-scsi", InterfaceKind::UltraScsi),
    ("wide-scsi", InterfaceKind::WideScsi),
    ("fast-wide-scsi", InterfaceKind::FastWideScsi),
    ("ultra-wide-scsi", InterfaceKind::UltraWideScsi),
];

/// Spindle speeds of Table 4, in rpm.
const SPEEDS: [u32; 5] = [3600, 4500, 5400, 6300, 7200];

/// The file system of Fig 8.
const FIGURE_8: Ext2Shape =
    Ext2Shape { block_bytes: 1024, blocks: 102_816, bytes_per_inode: 4096, reserved_percent: 5 };

/// Half a revolution in ms.
fn latency_ms(rpm: u32) -> f64 {
    30_000.0 / f64::from(rpm)
}

pub(super) fn findings() -> Findings {
    let mut found = Findings::default();
    let rate = |(name, kind): (&str, InterfaceKind)| Measured::new(format!("protocol.{name}"), kind.mb_s());
    found.measured.extend(PROTOCOLS.map(rate));
    found.measured.extend(SPEEDS.map(|rpm| Measured::new(format!("latency.{rpm}"), latency_ms(rpm))));
    let ext2 = FIGURE_8.geometry().expect("the shape of the study's file system is valid");
    let numbers = [
        ("inodes", ext2.inodes()),
        ("blocks", ext2.blocks),
        ("reserved-blocks", ext2.reserved_blocks),
        ("first-block", ext2.first_block),
        ("blocks-per-group", ext2.blocks_per_group),
        // A fragment is a block.
        ("fragments-per-group", ext2.blocks_per_group),
        ("inodes-per-group", ext2.inodes_per_group),
        ("inode-blocks-per-group", ext2.inode_blocks),
    ];
    let number = |(name, value): (&str, u32)| Measured::new(format!("ext2.{name}"), f64::from(value));
    found.measured.extend(numbers.map(number));
    found
}
