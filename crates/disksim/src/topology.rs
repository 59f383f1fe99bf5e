//! The set-up around a drive (`.parv`): which drive, and the transfer time of its bus and controller.

use crate::fields::{Fields, Notes};
use crate::parse::{Block, Document, Node};
use headstack_model::SpecError;
use std::collections::BTreeMap;

/// Why a switch of DiskSim's reports is not carried over.
pub(crate) const PRINTS: &str = "says what DiskSim prints, nothing of the drive";

#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Transfer {
    pub(crate) read_ms: f64,
    pub(crate) write_ms: f64,
}

/// The block of the drive to import: the first `disksim_disk`, else the first `dm_disk`. All others are noted.
pub(crate) fn drive<'a>(document: &'a Document, notes: &Notes) -> Option<&'a Block> {
    let first = |kind: &str| document.blocks.iter().find(|block| block.kind == kind);
    let drive = first("disksim_disk").or_else(|| first("dm_disk"))?;
    for block in document.blocks.iter().filter(|block| !std::ptr::eq(*block, drive)) {
        let key = block.name.as_ref().map_or(block.kind.clone(), |name| format!("{} {name}", block.kind));
        let why = match block.kind.as_str() {
            "disksim_disk" | "dm_disk" => "another drive: only the first is imported",
            // These have notes of their own when they carry the drive.
            "disksim_bus" | "disksim_ctlr" => continue,
            _ => "describes the set-up or the load, not the drive",
        };
        notes.add(&block.place.file, block.place.line, &key, why);
    }
    Some(drive)
}

/// The transfer time on the path to `drive`: the slower of its bus and its controller, zero without either.
pub(crate) fn transfer(document: &Document, drive: &Block, notes: &Notes) -> Result<Transfer, SpecError> {
    let components = components(document);
    let mut path = Vec::new();
    let found = document.topology.iter().any(|node| find(&components, node, drive, &mut path));
    let nearest = |kind: &str| path.iter().rev().find(|block| block.kind == kind).copied().filter(|_| found);
    let (bus, controller) = (nearest("disksim_bus"), nearest("disksim_ctlr"));
    for block in &document.blocks {
        let used = [bus, controller].iter().flatten().any(|one| std::ptr::eq(*one, block));
        if matches!(block.kind.as_str(), "disksim_bus" | "disksim_ctlr") && !used {
            let key = format!("{} {}", block.kind, block.name.as_deref().unwrap_or(""));
            notes.add(&block.place.file, block.place.line, key.trim(), "does not carry the drive");
        }
    }
    let mut slowest = Transfer::default();
    if let Some(bus) = bus {
        slowest = bus_transfer(bus, notes)?;
    }
    if let Some(controller) = controller {
        let mut fields = Fields::new(controller, notes);
        let time = fields.number_or_zero("Bulk sector transfer time")?;
        slowest.read_ms = slowest.read_ms.max(time);
        slowest.write_ms = slowest.write_ms.max(time);
        fields.note("", "of the controller only the transfer time of a sector is carried over");
    }
    Ok(slowest)
}

fn bus_transfer(bus: &Block, notes: &Notes) -> Result<Transfer, SpecError> {
    let mut fields = Fields::new(bus, notes);
    let transfer = Transfer {
        read_ms: fields.number_or_zero("Read block transfer time")?,
        write_ms: fields.number_or_zero("Write block transfer time")?,
    };
    if fields.optional_number("Arbitration time")?.is_some_and(|time| time != 0.0) {
        let why = "is not carried over: one drive has the bus for itself; add it to bus.reconnect_first_ms manually";
        fields.note("Arbitration time", why);
    }
    for key in ["type", "Arbitration type"] {
        fields.skip(key, "one drive has the bus for itself");
    }
    fields.skip("Print stats", PRINTS);
    fields.finish();
    Ok(transfer)
}

/// The block of each instance. Of equal names the first counts, as in DiskSim.
pub(crate) fn components(document: &Document) -> BTreeMap<&str, &Block> {
    let named = document.blocks.iter().rev().filter_map(|block| Some((block.name.as_deref()?, block)));
    let blocks: BTreeMap<&str, &Block> = named.collect();
    let instances = document.instances.iter().rev();
    instances.filter_map(|(name, kind)| Some((name.as_str(), *blocks.get(kind.as_str())?))).collect()
}

/// Finds an instance of `drive` in and below `node`; `path` then has the blocks of the components above it.
fn find<'a>(
    components: &BTreeMap<&str, &'a Block>,
    node: &Node,
    drive: &Block,
    path: &mut Vec<&'a Block>,
) -> bool {
    let Some(block) = components.get(node.name.as_str()) else { return false };
    if std::ptr::eq(*block, drive) {
        return true;
    }
    path.push(block);
    if node.below.iter().any(|below| find(components, below, drive, path)) {
        return true;
    }
    path.pop();
    false
}
