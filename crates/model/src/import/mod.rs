//! Import of DiskSim's drives: `.diskspecs`, `.model` and `.parv` files become a [`DriveSpec`].
//!
//! Read are the parameter language (libparam: blocks, lists, `source`, `instantiate`, topology) and in it
//! `disksim_disk` with its queue, `dm_disk`, `dm_mech_g1` with every type of seek curve, `dm_layout_g1` and
//! `dm_layout_g4`. [`import`] takes the first drive of a `.parv`, with the transfer times of the bus and the controller that
//! carry it; [`setup::import_setup`] takes all that stands there. Each key is either carried over or listed with the
//! reason; a switch set to what the model does anyway counts as carried over. A `disksim_simpledisk` is read as part of a
//! whole set-up. Not read: the layout `dm_layout_g2` (a raw list of tracks), MEMS and SSD models.
//!
//! *Source:* the DiskSim 4.0 reference manual and the module descriptions of its parameters.

mod electronics;
mod fields;
mod grammar;
mod layout;
mod lexer;
mod logorg;
mod mechanics;
mod parse;
mod queue;
mod rig;
pub mod setup;
mod simple;
mod synthetic;

use crate::spec::{BusSpec, CacheSpec, DriveSpec, Evidence, OverheadSpec, QueueSpec, SpecError};
use fields::{Fields, Notes};
use lexer::{Lexer, Place};
use parse::{Block, Document};
use std::collections::BTreeMap;
use std::fmt;

/// Hands out the text of a file that an imported one names.
type Reader<'a> = dyn FnMut(&str) -> Result<String, String> + 'a;

/// A drive read from DiskSim's files.
#[derive(Clone, Debug, PartialEq)]
pub struct Imported {
    /// The drive, checked.
    pub spec: DriveSpec,
    /// What was met and could not be carried over, in the order of the files.
    pub not_carried: Vec<NotCarried>,
}

/// A key that was met and not carried over as it stands. Displays as one line: `file:line: key: why`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct NotCarried {
    /// The file it stands in.
    pub file: String,
    /// Its line, counted from 1.
    pub line: usize,
    /// The key, or the block.
    pub key: String,
    /// Why it was left, or what was made of it.
    pub why: String,
}

impl fmt::Display for NotCarried {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}: ", self.file, self.line)?;
        if !self.key.is_empty() {
            write!(f, "{}: ", self.key)?;
        }
        f.write_str(&self.why)
    }
}

/// Imports the drive described by `text`, the content of the file `origin`.
///
/// `read` is asked for the files that the text names (by `source` and as seek curves), with their names as they stand
/// there; names in files of other folders get that folder in front.
///
/// *Errors:* the first fault of the language or of a value, with its file and line; a drive that is read but breaks a rule of
/// drive files ([`DriveSpec::check`]), with the key of ours that it breaks.
pub fn import(
    text: &str,
    origin: &str,
    mut read: impl FnMut(&str) -> Result<String, String>,
) -> Result<Imported, SpecError> {
    let document = document(text, origin, &mut read)?;
    let notes = Notes::default();
    let Some(drive) = rig::drive(&document, &notes) else {
        let message = "no drive here: needs a disksim_disk or a dm_disk block with layout and mechanics";
        return Err(Place::start(origin).error("", message));
    };
    let transfer = rig::transfer(&document, drive, &notes)?;
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

/// All that stands in `text`, the content of the file `origin`, and in the files that it sources.
fn document(text: &str, origin: &str, read: &mut Reader<'_>) -> Result<Document, SpecError> {
    let mut lexer = Lexer::new(origin, read);
    lexer.run(text, origin, 0)?;
    parse::parse(&lexer.tokens, &Place::start(origin))
}

/// A `disksim_disk`: electronics, and in it the model.
fn whole_drive(
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
    let title = named.name.clone().unwrap_or_else(|| "imported".to_string());
    let name = drive_name(&title);
    let source = format!("DiskSim parameters of {title}, imported from {origin}");
    Ok(DriveSpec {
        name,
        title,
        year: None,
        evidence: Evidence::Derived,
        capacity_sectors: laid.capacity,
        sector_bytes: 512,
        physical_sector_bytes: 512,
        sources: BTreeMap::from([("disksim".to_string(), source)]),
        geometry: laid.geometry,
        mechanics,
        overhead: OverheadSpec::default(),
        cache: CacheSpec::default(),
        media_cache: None,
        bus: BusSpec::default(),
        queue: QueueSpec::default(),
    })
}

/// Milliseconds in microseconds, to the picosecond, so that 0.18686 ms becomes 186.86 us and not 186.85999999999999.
fn us_of_ms(ms: f64) -> f64 {
    (ms * 1e9).round() / 1e6
}

/// A drive's name made of the name of a block: lower case, hyphens, without DiskSim's endings.
fn drive_name(block: &str) -> String {
    let mut stem = block.to_ascii_lowercase();
    for ending in [".model", "_model", "_validate"] {
        stem = stem.strip_suffix(ending).map_or(stem.clone(), str::to_string);
    }
    let hyphened: String = stem.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '-' }).collect();
    let words: Vec<&str> = hyphened.split('-').filter(|word| !word.is_empty()).collect();
    if words.is_empty() { "imported".to_string() } else { words.join("-") }
}
