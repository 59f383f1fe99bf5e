//! File systems aligned to the tracks of a disk, tested with the common programs that make, check and use file systems.
//!
//! A test whose programs or devices this machine lacks is skipped, and the skip is recorded.

#![allow(clippy::disallowed_methods, reason = "tests run programs and read files")]

#[path = "../cli/common.rs"]
#[allow(dead_code, reason = "other tests use the rest")]
mod common;
#[path = "../emulate/device.rs"]
#[allow(dead_code, reason = "other tests use the rest")]
mod device;
#[path = "../emulate/emulator.rs"]
#[allow(dead_code, reason = "other tests use the rest")]
mod emulator;
#[path = "../emulate/nbd.rs"]
#[allow(dead_code, reason = "other tests use the rest")]
mod nbd;
#[path = "../emulate/tools.rs"]
#[allow(dead_code, reason = "other tests use the rest")]
mod tools;

mod align;
mod check;
mod disks;
mod exclude;
mod ext4;
mod hints;
mod inodes;
mod interrupted;
mod partitions;
mod reorganize;
mod show;
