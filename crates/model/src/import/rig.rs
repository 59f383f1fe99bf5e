//! The set-up around a drive (`.parv`): which drive, and how fast its bus and controller move a sector.

use super::SpecError;
use super::fields::{Fields, Notes};
use super::parse::{Block, Document, Node};

/// What a sector takes on the way to the drive.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Transfer {
    pub(super) read_ms: f64,
    pub(super) write_ms: f64,
}

/// The block of the drive to import: the first `disksim_disk`, else the first `dm_disk`. All others are noted.
pub(super) fn drive<'a>(document: &'a Document, notes: &Notes) -> Option<&'a Block> {
    let first = |kind: &str| document.blocks.iter().find(|block| block.kind == kind);
    let drive = first("disksim_disk").or_else(|| first("dm_disk"))?;
    for block in document.blocks.iter().filter(|block| !std::ptr::eq(*block, drive)) {
        let key = block.name.as_ref().map_or(block.kind.clone(), |name| format!("{} {name}", block.kind));
        let why = match block.kind.as_str() {
            "disksim_disk" | "dm_disk" => "another drive: only the first is imported",
            // These speak for themselves when they carry the drive.
            "disksim_bus" | "disksim_ctlr" => continue,
            _ => "describes the set-up or the load, not the drive",
        };
        notes.add(&block.place.file, block.place.line, &key, why);
    }
    Some(drive)
}

/// The transfer time on the way to `drive`: the slower of its bus and its controller, zero where there are none.
pub(super) fn transfer(document: &Document, drive: &Block, notes: &Notes) -> Result<Transfer, SpecError> {
    let mut path = Vec::new();
    let found = document.topology.iter().any(|node| find(document, node, drive, &mut path));
    let nearest = |kind: &str| path.iter().rev().find(|block| block.kind == kind).copied().filter(|_| found);
    let (bus, controller) = (nearest("disksim_bus"), nearest("disksim_ctlr"));
    let mut slowest = Transfer::default();
    if let Some(bus) = bus {
        let mut fields = Fields::new(bus, notes);
        slowest.read_ms = fields.number_or_zero("Read block transfer time")?;
        slowest.write_ms = fields.number_or_zero("Write block transfer time")?;
        if fields.optional_number("Arbitration time")?.is_some_and(|time| time != 0.0) {
            fields.note(
                "Arbitration time",
                "the bus belongs to one drive here; add it to bus.reconnect_first_ms by hand",
            );
        }
        for key in ["type", "Arbitration type", "Print stats"] {
            fields.skip(key, "the bus belongs to one drive here");
        }
        fields.finish();
    }
    if let Some(controller) = controller {
        let mut fields = Fields::new(controller, notes);
        let time = fields.number_or_zero("Bulk sector transfer time")?;
        slowest.read_ms = slowest.read_ms.max(time);
        slowest.write_ms = slowest.write_ms.max(time);
        fields.note("", "of the controller only the transfer time per sector is carried over");
    }
    for block in &document.blocks {
        let used = [bus, controller].iter().flatten().any(|one| std::ptr::eq(*one, block));
        if matches!(block.kind.as_str(), "disksim_bus" | "disksim_ctlr") && !used {
            let key = format!("{} {}", block.kind, block.name.as_deref().unwrap_or(""));
            notes.add(&block.place.file, block.place.line, key.trim(), "does not carry the drive");
        }
    }
    Ok(slowest)
}

/// Looks for an instance of `drive` below `node`; `path` then holds the blocks of the components above it.
fn find<'a>(document: &'a Document, node: &Node, drive: &Block, path: &mut Vec<&'a Block>) -> bool {
    let Some(block) = block_of(document, &node.name) else { return false };
    if std::ptr::eq(block, drive) {
        return true;
    }
    path.push(block);
    if node.below.iter().any(|below| find(document, below, drive, path)) {
        return true;
    }
    path.pop();
    false
}

/// The block that an instance is one of.
fn block_of<'a>(document: &'a Document, instance: &str) -> Option<&'a Block> {
    let (_, kind) = document.instances.iter().find(|(name, _)| name == instance)?;
    document.blocks.iter().find(|block| block.name.as_ref() == Some(kind))
}
