//! A node as plain text.

use super::rows::{self, Order};
use crate::serve::state::StatePart;
use std::io::{self, Write};

pub(super) fn print(node: StatePart<'_>, order: Order, out: &mut dyn Write) -> io::Result<()> {
    writeln!(out, "{}\n", rows::title("", node))?;
    write!(out, "{}", rows::disks(node).to_text())?;
    for disk in node.list("disk") {
        writeln!(out, "{}", rows::tuning(disk))?;
    }
    let streams = rows::streams(node, order, false);
    if !streams.rows.is_empty() {
        write!(out, "\n{}", streams.to_text())?;
    }
    out.flush()
}
