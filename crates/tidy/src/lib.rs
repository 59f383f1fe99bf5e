//! *Does the repository keep its own rules?* Finds and reads the files of the repository for the tests of this crate.
#![doc = include_str!("../README.md")]
#![allow(clippy::disallowed_methods, reason = "the crate reads the repository")]

mod files;
pub mod prose;
pub mod ratchet;
pub mod scan;

pub use files::{
    Code, Source, all_code, all_files, entries, pages, program_code, read, root, sources, without_tests,
};
