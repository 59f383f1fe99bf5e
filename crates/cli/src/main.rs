//! The `headstack` command.

fn main() {}
