//! The command on real input: what it prints, what it writes, how it fails.

mod command;
mod common;
mod drive;
mod run;
mod validate;
