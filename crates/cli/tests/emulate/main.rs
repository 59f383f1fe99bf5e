//! The emulator with real clients: common programs, file systems and the kernel's loop device. Some tests cut its power.
//!
//! A test whose programs or devices this machine lacks is skipped, and the skip is recorded. If only contents matter, the disk runs at
//! 1000 times its real speed.

#![allow(clippy::disallowed_methods, reason = "tests run programs, read files and wait for what comes of it")]

mod agreement;
mod agreement_of_loads;
mod checked;
mod clients;
mod copies;
mod cuts;
mod deaths;
mod device;
mod emulator;
mod endings;
mod faults;
mod filesystems;
mod hostile;
mod nbd;
mod noise;
mod probe;
mod tools;
mod tuned;
mod zones;
