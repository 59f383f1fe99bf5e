//! The command on real input: what it prints, what it writes, how it fails.

#![allow(clippy::disallowed_methods, reason = "tests read files")]

mod benchmarks;
mod browser;
mod command;
mod common;
mod compare;
mod doctor;
mod drive;
mod emulate;
mod explore;
mod files;
mod harsh;
mod install;
mod interrupt;
mod json;
mod keys;
mod man;
mod node;
mod page;
mod probe;
mod rearrange;
mod recipes;
mod reproduce;
mod rig;
mod run;
mod schemas;
mod serve;
mod sim;
mod stripe;
mod sweep;
#[path = "../emulate/tools.rs"]
#[allow(dead_code, reason = "tests of emulated disks use all of it")]
mod tools;
mod trace;
mod tune;
mod validate;
mod zones;
