//! Lists the files of `drives/` and `firmware/` for `src/drives.rs` and `src/spec/firmware.rs`, so that a file added there cannot be forgotten.

#![allow(clippy::disallowed_methods, reason = "a build script reads files")]

#[path = "build/list.rs"]
mod list;

fn main() {
    list::write("drives", "drives.rs");
    list::write("firmware", "firmware.rs");
}
