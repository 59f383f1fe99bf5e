//! One drive: converts a `disksim_disk` or `dm_disk` block with layout, mechanics and electronics into a [`DriveSpec`].

use crate::fields::{Fields, Notes};
use crate::lexer::{Lexer, Place};
use crate::not_carried::{NotCarried, Reader};
use crate::parse::{self, Block, Document};
use crate::{electronics, layout, mechanics, topology};
use headstack_model::spec::{
    BusSpec, CacheSpec, DriveSpec, Evidence, GeometrySpec, MechanicsSpec, OverheadSpec, QueueSpec, SpecError,
};
use std::collections::BTreeMap;

/// A drive from DiskSim's files.
#[derive(Clone, Debug, PartialEq)]
#[allow(missing_docs, reason = "the names say it")]
pub struct Imported {
    pub spec: DriveSpec,
    /// What could not be carried over, in the order of the files.
    pub not_carried: Vec<NotCarried>,
}

/// Imports the drive in `text`, the content of the file `origin`.
///
/// `read` returns the files that the text names (by `source` and as seek curves), by their names there; names in files of other
/// folders are prefixed with the folder.
///
/// *Errors:* the first syntax error or invalid value, with its file and line; a drive that breaks a rule of drive files
/// ([`DriveSpec::check`]), with the key of the drive file.
pub fn import(
    text: &str,
    origin: &str,
    mut read: impl FnMut(&str) -> Result<String, String>,
) -> Result<Imported, SpecError> {
    let document = document(text, origin, &mut read)?;
    let notes = Notes::default();
    let Some(drive) = topology::drive(&document, &notes) else {
        let message = "no drive here: needs a disksim_disk or a dm_disk block with layout and mechanics";
        return Err(Place::start(origin).error("", message));
    };
    let transfer = topology::transfer(&document, drive, &notes)?;
    let mut spec = match drive.kind.as_str() {
        "disksim_disk" => whole_drive(drive, origin, &mut read, &notes)?,
        _ => model(drive, drive, origin, &mut read, &notes)?,
    };
    spec.bus.read_us_per_sector = spec.bus.read_us_per_sector.max(us_of_ms(transfer.read_ms));
    spec.bus.write_us_per_sector = spec.bus.write_us_per_sector.max(us_of_ms(transfer.write_ms));
    spec.check().map_err(|error| drive.place.error(&error.key, error.message))?;
    let mut not_carried = notes.into_list();
    not_carried.sort();
    Ok(Imported { spec, not_carried })
}

/// The content of `text`, the file `origin`, and of the files that it sources.
pub(crate) fn document(text: &str, origin: &str, read: &mut Reader<'_>) -> Result<Document, SpecError> {
    let mut lexer = Lexer::new(origin, read);
    lexer.run(text, origin, 0)?;
    parse::parse(&lexer.tokens, &Place::start(origin))
}

/// A `disksim_disk`: the electronics and the model in them.
pub(crate) fn whole_drive(
    drive: &Block,
    origin: &str,
    read: &mut Reader,
    notes: &Notes,
) -> Result<DriveSpec, SpecError> {
    let mut fields = Fields::new(drive, notes);
    let block = fields.block("Model")?;
    let mut spec = model(block, drive, origin, read, notes)?;
    let electronics = electronics::convert(fields)?;
    spec.overhead = electronics.overhead;
    spec.cache = electronics.cache;
    spec.bus = electronics.bus;
    spec.queue = electronics.queue;
    spec.mechanics.zero_latency_read = electronics.zero_latency_read;
    spec.mechanics.zero_latency_write = electronics.zero_latency_write;
    Ok(spec)
}

/// A `dm_disk`: layout and mechanics, with default electronics. `named` is the block that gives the drive its name.
fn model(
    block: &Block,
    named: &Block,
    origin: &str,
    read: &mut Reader,
    notes: &Notes,
) -> Result<DriveSpec, SpecError> {
    if block.kind != "dm_disk" {
        return Err(block.place.error("Model", format!("`{}` is not read; dm_disk is", block.kind)));
    }
    let mut fields = Fields::new(block, notes);
    let heads = fields.count("Number of data surfaces")?;
    let mut cylinders = fields.count("Number of cylinders")?;
    let laid = layout::convert(fields.block("Layout Model")?, heads, cylinders, notes)?;
    if laid.geometry.cylinders > cylinders {
        cylinders = laid.geometry.cylinders;
        fields.note("Number of cylinders", format!("the layout needs {cylinders}, which is what counts"));
    }
    let mechanics = mechanics::convert(fields.block("Mechanical Model")?, cylinders, origin, read, notes)?;
    let claimed = fields.optional_number("Block count")?;
    if claimed.is_some_and(|claimed| claimed != laid.capacity as f64) {
        fields
            .note("Block count", format!("the layout holds {} blocks, which is what counts", laid.capacity));
    }
    fields.finish();
    if std::ptr::eq(block, named) {
        notes.add(
            &block.place.file,
            block.place.line,
            "",
            "no electronics here: overheads, cache, bus and queue are the defaults",
        );
    }
    Ok(with_default_electronics(named, origin, laid.capacity, laid.geometry, mechanics))
}

/// A drive named after a block.
pub(crate) fn with_default_electronics(
    named: &Block,
    origin: &str,
    capacity_sectors: u64,
    geometry: GeometrySpec,
    mechanics: MechanicsSpec,
) -> DriveSpec {
    let title = named.name.clone().unwrap_or_else(|| "imported".to_string());
    let source = format!("DiskSim parameters of {title}, imported from {origin}");
    DriveSpec {
        name: drive_name(&title),
        title,
        year: None,
        evidence: Evidence::Derived,
        firmware: None,
        capacity_sectors,
        sector_bytes: 512,
        physical_sector_bytes: 512,
        sources: BTreeMap::from([("disksim".to_string(), source)]),
        geometry,
        mechanics,
        overhead: OverheadSpec::default(),
        cache: CacheSpec::default(),
        media_cache: None,
        zones: None,
        shingled: None,
        bus: BusSpec::default(),
        queue: QueueSpec::default(),
    }
}

/// Converts ms to µs, rounded to the picosecond, so that 0.18686 ms becomes 186.86 µs and not 186.85999999999999.
pub(crate) fn us_of_ms(ms: f64) -> f64 {
    (ms * 1e9).round() / 1e6
}

/// A drive's name from that of a block: lower case, hyphens, without DiskSim's endings.
fn drive_name(block: &str) -> String {
    let mut stem = block.to_ascii_lowercase();
    for ending in [".model", "_model", "_validate"] {
        stem = stem.strip_suffix(ending).map_or(stem.clone(), str::to_string);
    }
    let hyphened: String = stem.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '-' }).collect();
    let words: Vec<&str> = hyphened.split('-').filter(|word| !word.is_empty()).collect();
    if words.is_empty() { "imported".to_string() } else { words.join("-") }
}
