//! Traces in: one file a format.
//!
//! Readers take any `BufRead`, hold one line at a time and never panic, whatever they are given.

pub mod validate;
