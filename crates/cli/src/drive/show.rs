//! `headstack drive show`.

use crate::catalog;
use crate::failure::Failure;
use crate::survey::{Part, Survey};
use crate::units::{capacity, grouped, significant};
use headstack_model::spec::{CacheSpec, Sparing, Tagging};
use headstack_model::{DriveSpec, Geometry, Mechanics, TrackPlace, firmware};
use serde::Serialize;
use std::io::Write;

/// Show a drive: its figures and where the keys of its firmware are from, or its whole file as JSON.
#[derive(clap::Args)]
pub(crate) struct Show {
    /// A shipped drive or a drive file.
    #[arg(value_name = "NAME|FILE")]
    drive: String,
    /// Print every key of the drive file as JSON.
    #[arg(long)]
    json: bool,
}

impl Show {
    pub(super) fn run(&self, out: &mut dyn Write) -> Result<(), Failure> {
        let (spec, text) = catalog::load_with_text(&self.drive)?;
        if self.json {
            let json = serde_json::to_string_pretty(&spec).expect("every spec is expressible in JSON");
            writeln!(out, "{json}")?;
            return Ok(());
        }
        let geometry = Geometry::new(&spec).map_err(Failure::input)?;
        writeln!(out, "{}\n", spec.title)?;
        for (name, value) in figures(&spec, &geometry) {
            writeln!(out, "  {name:<14} {value}")?;
        }
        show_firmware_keys(&spec, &text, &self.drive, out)?;
        if !spec.sources.is_empty() {
            writeln!(out, "\nSources")?;
        }
        for (short, full) in &spec.sources {
            writeln!(out, "  {short:<14} {full}")?;
        }
        let notes = spec.notes(&geometry, "", &spec.name);
        if !notes.is_empty() {
            writeln!(out, "\nNotes")?;
        }
        for note in notes {
            writeln!(out, "  {}: {}", note.key, note.message)?;
        }
        Ok(())
    }
}

/// Writes the keys that firmware decides, with the file that each value is from; nothing for a drive without a class.
fn show_firmware_keys(
    spec: &DriveSpec,
    text: &str,
    origin: &str,
    out: &mut dyn Write,
) -> Result<(), Failure> {
    let Some(class) = &spec.firmware else { return Ok(()) };
    let keys = firmware::drive_keys(text, origin).map_err(Failure::input)?;
    writeln!(out, "\nFirmware keys")?;
    for key in keys {
        let value = key.value().map_or(String::new(), ToString::to_string);
        let from = match (&key.in_file, &key.in_class) {
            (None, _) => format!("from firmware class {class}"),
            (Some(_), None) => "from the drive file".to_string(),
            (Some(_), Some(other)) => format!("from the drive file; the class has {other}"),
        };
        writeln!(out, "  {:<36} {value:<18} {from}", key.path)?;
    }
    Ok(())
}

fn figures(spec: &DriveSpec, geometry: &Geometry) -> Vec<(&'static str, String)> {
    let survey = Survey::new(spec, geometry);
    let layout = &spec.geometry;
    let tracks = u64::from(layout.heads) * u64::from(layout.cylinders);
    let mut figures = vec![
        ("name", spec.name.clone()),
        ("evidence", word(&spec.evidence)),
        ("firmware", firmware_words(spec)),
        (
            "capacity",
            format!(
                "{}, {} sectors of {} bytes",
                capacity(spec.capacity_bytes()),
                grouped(spec.capacity_sectors),
                spec.sector_bytes
            ),
        ),
        (
            "surfaces",
            format!(
                "{} heads, {} cylinders, {} tracks",
                layout.heads,
                grouped(u64::from(layout.cylinders)),
                grouped(tracks)
            ),
        ),
        ("layout", layout_words(spec)),
        ("density", density(&survey.parts)),
        ("media rate", rates(&survey)),
    ];
    figures.extend(spec.year.map(|year| ("year", year.to_string())));
    figures.extend(mechanics(spec));
    figures.extend(electronics(spec));
    figures
}

/// The class of firmware, with the drives on which it was measured or what it is assumed from.
fn firmware_words(spec: &DriveSpec) -> String {
    let Some(name) = &spec.firmware else { return "this file's own".to_string() };
    match firmware::load(name) {
        Ok(class) if class.measured_on.starts_with("assumption") => format!("{name}, {}", class.measured_on),
        Ok(class) => format!("{name}, measured on: {}", class.measured_on),
        Err(_) => name.clone(),
    }
}

fn layout_words(spec: &DriveSpec) -> String {
    let zones = spec.geometry.zones.len() + spec.geometry.band_zones.len();
    let zones = if zones > 0 { format!(", {zones} zones") } else { String::new() };
    let spares = match spec.geometry.sparing {
        Sparing::None => "no spares".to_string(),
        sparing => format!("spares: {}", word(&sparing)),
    };
    format!("{}{zones}, {spares}", word(&spec.geometry.layout))
}

fn density(parts: &[Part]) -> String {
    let most = parts.iter().map(|part| part.most).max().unwrap_or(0);
    let least = parts.iter().map(|part| part.least).min().unwrap_or(0);
    format!("{most} to {least} sectors per track")
}

fn rates(survey: &Survey) -> String {
    let parts = &survey.parts;
    let rates = |rate: &dyn Fn(&Part) -> f64| {
        let ends = [parts.first(), parts.last()].map(|part| part.map_or(0.0, rate));
        format!("{} to {}", significant(ends[0], 3), significant(ends[1], 3))
    };
    format!(
        "{} MB/s; long reads {} MB/s",
        rates(&|part| survey.media_mb_s(part)),
        rates(&|part| survey.streaming_mb_s(part))
    )
}

fn mechanics(spec: &DriveSpec) -> Vec<(&'static str, String)> {
    let mechanics = Mechanics::new(spec);
    let seek = |distance: u32, write: bool| {
        let to = TrackPlace { cylinder: distance, ..TrackPlace::default() };
        mechanics.reposition(TrackPlace::default(), to, write).as_ms()
    };
    let seeks = |write: bool| {
        let cylinders = spec.geometry.cylinders;
        let mean = mean_over_random_pairs(cylinders, |distance| seek(distance, write));
        let full = seek(cylinders - 1, write);
        format!(
            "{:.2} ms to the next cylinder, {mean:.2} ms on average, {full:.2} ms over all",
            seek(1, write)
        )
    };
    let spec = &spec.mechanics;
    let turn = mechanics.spindle().period().as_ms();
    vec![
        ("spindle", format!("{} rpm, {turn:.3} ms a turn", spec.rpm)),
        ("read seek", seeks(false)),
        ("write seek", seeks(true)),
        ("head switch", format!("{} ms", spec.head_switch_ms)),
        (
            "zero latency",
            format!("reads: {}, writes: {}", word(&spec.zero_latency_read), word(&spec.zero_latency_write)),
        ),
    ]
}

/// Mean time between two random cylinders. The probability of a distance d is proportional to its number of positions, cylinders − d.
fn mean_over_random_pairs(cylinders: u32, time: impl Fn(u32) -> f64) -> f64 {
    let step = (cylinders / 5000).max(1);
    let (mut sum, mut weights) = (0.0, 0.0);
    for distance in (1..cylinders).step_by(step as usize) {
        let weight = f64::from(cylinders - distance);
        sum += weight * time(distance);
        weights += weight;
    }
    if weights > 0.0 { sum / weights } else { 0.0 }
}

fn electronics(spec: &DriveSpec) -> Vec<(&'static str, String)> {
    let after = &spec.overhead.after_read;
    let rate = |us_per_sector: f64| match us_per_sector {
        us if us > 0.0 => format!("{} MB/s", significant(f64::from(spec.sector_bytes) / us, 3)),
        _ => "no time".to_string(),
    };
    let bus = &spec.bus;
    vec![
        (
            "overhead",
            format!(
                "read miss {} ms, read hit {} ms, write {} ms",
                after.read_miss_ms, after.read_hit_ms, after.write_ms
            ),
        ),
        ("cache", cache(&spec.cache, spec.sector_bytes)),
        ("write cache", word(&spec.cache.write_cache)),
        ("interface", bus.interface.map_or("not given".to_string(), |interface| word(&interface))),
        ("bus", format!("reads {}, writes {}", rate(bus.read_us_per_sector), rate(bus.write_us_per_sector))),
        ("queue", format!("{} deep, {}", spec.queue.depth, spec.queue.order)),
        ("tagging", tagging(spec)),
    ]
}

/// The kind of tags, and its effect on a FLUSH.
fn tagging(spec: &DriveSpec) -> String {
    match spec.tagging() {
        _ if spec.queue.depth == 1 => "none: one command at a time".to_string(),
        tagging @ Tagging::Ncq => format!("{}: a FLUSH goes alone", word(&tagging)),
        tagging @ Tagging::Tcq => format!("{}: a FLUSH is queued with the others", word(&tagging)),
    }
}

fn cache(cache: &CacheSpec, sector_bytes: u32) -> String {
    if !cache.enabled {
        return "off".to_string();
    }
    let bytes = u64::from(cache.segment_sectors) * u64::from(sector_bytes);
    let most = cache.segments_max.map_or(String::new(), |most| format!(" (up to {most} smaller ones)"));
    let (segments, kib) = (cache.segments, bytes / 1024);
    format!("{segments} segments of {kib} KiB{most}, read-ahead: {}", word(&cache.read_ahead))
}

/// The word that a drive file uses for a choice.
pub(super) fn word(choice: &impl Serialize) -> String {
    match serde_json::to_value(choice) {
        Ok(serde_json::Value::String(word)) => word,
        _ => unreachable!("choices in drive files are words"),
    }
}
