//! Lists the rigs of `rigs/` for `src/rig/shipped.rs`, so that a file added there cannot be forgotten.

#![allow(clippy::disallowed_methods, reason = "a build script reads files")]

// A link to the list of `headstack-model`, which a published crate has inside.
#[path = "build/list.rs"]
mod list;

fn main() {
    list::write("rigs", "rigs.rs");
}
