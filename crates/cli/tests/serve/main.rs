//! The node with real clients, on emulated disks and files. Clients must read what they wrote, and flushed data must survive a kill.
//!
//! A test whose programs or devices this machine lacks is skipped, and the skip is recorded.

#![allow(clippy::disallowed_methods, reason = "tests run programs, read files and wait for what comes of it")]

#[path = "../emulate/checked.rs"]
mod checked;
mod clients;
#[path = "../emulate/device.rs"]
#[allow(dead_code, reason = "tests of emulated disks use all of it")]
mod device;
mod kills;
#[path = "../emulate/nbd.rs"]
#[allow(dead_code, reason = "tests of emulated disks use all of it")]
mod nbd;
mod node;
#[path = "../emulate/noise.rs"]
mod noise;
mod rearrange;
mod slowness;
#[path = "../emulate/tools.rs"]
#[allow(dead_code, reason = "tests of emulated disks use all of it")]
mod tools;
