//! The emulator with real clients: programs that people use, file systems, a kernel's loop device, power cuts.
//!
//! A test that needs what this machine lacks is skipped, and the skip is recorded. Where only contents matter the disk
//! runs as fast as it may.

#![allow(clippy::disallowed_methods, reason = "tests run programs, read files and wait for what comes of it")]

mod agreement;
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
