//! *What does a machine in front of a disk do with a request?* Machines that keep tables and memory, without a clock, a thread or I/O.
#![doc = include_str!("../README.md")]

pub mod position;
pub mod rearrange;
pub mod rearrange_table;
pub mod streams;
