//! Computes a drive file from the figures of a data sheet.
//!
//! A sheet gives capacity, speed, a rate, a seek time and little more; a model needs zones, skews, a seek curve and a
//! cache. [`DataSheet::drive_file`] writes a whole drive file in which each number says where it comes from: `given`,
//! `derived` from given ones, or an `assumption`, taken from what the shipped drives have in common. Not modelled:
//! spares, defects, surfaces that differ from each other.

mod electronics;
mod seek;
mod text;
mod zones;

use crate::firmware::{self, Recording};
use crate::spec::Interface;
use seek::Seeks;
use text::Text;
use zones::Tracks;

/// The figures of a data sheet. Absent ones are assumed.
#[derive(Clone, Debug, PartialEq)]
#[allow(missing_docs, reason = "the names say it")]
pub struct DataSheet {
    /// The drive's name on the command line: lower case with hyphens.
    pub name: String,
    /// Maker, model and capacity, for people.
    pub title: String,
    pub capacity_bytes: u64,
    pub rpm: f64,
    /// Sustained rate on the outermost tracks.
    pub mb_s: f64,
    /// Average seek of a read.
    pub seek_ms: f64,
    /// Sustained rate on the innermost tracks.
    pub inner_mb_s: Option<f64>,
    pub heads: Option<u32>,
    /// Seek to the next track.
    pub track_to_track_ms: Option<f64>,
    /// Seek over all tracks.
    pub full_stroke_ms: Option<f64>,
    /// Average seek of a write.
    pub write_seek_ms: Option<f64>,
    /// Size of the buffer.
    pub cache_bytes: Option<u64>,
    /// Whether writes are reported once they are in the buffer.
    pub write_cache: Option<bool>,
    pub interface: Option<Interface>,
    pub interface_mb_s: Option<f64>,
    /// Commands that may be outstanding.
    pub queue_depth: Option<u32>,
    pub sector_bytes: Option<u32>,
    pub physical_sector_bytes: Option<u32>,
    /// Year of introduction.
    pub year: Option<u32>,
    /// How the tracks are recorded.
    pub recording: Recording,
    /// Class of firmware.
    pub firmware: Option<String>,
}

/// A figure of a data sheet that is out of range or contradicts other figures.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[error("{figure}: {value} is outside {least} to {most} {unit}{condition}")]
#[allow(missing_docs, reason = "the names say it")]
pub struct SheetError {
    pub figure: &'static str,
    pub value: f64,
    pub least: f64,
    pub most: f64,
    pub unit: &'static str,
    /// The other figures on which the limits depend, as the end of the message; may be empty.
    pub condition: String,
}

fn within(
    figure: &'static str,
    value: f64,
    [least, most]: [f64; 2],
    unit: &'static str,
    condition: impl FnOnce() -> String,
) -> Result<(), SheetError> {
    if value >= least && value <= most {
        return Ok(());
    }
    let round = |limit: f64| (limit * 1e3).round() / 1e3;
    let (least, most) = (round(least), round(most));
    Err(SheetError { figure, value, least, most, unit, condition: condition() })
}

/// A figure that was given, or is assumed for a reason.
#[derive(Clone, Copy, Debug)]
struct Figure<T> {
    value: T,
    assumed: Option<&'static str>,
}

impl<T> Figure<T> {
    fn new(given: Option<T>, assumed: T, reason: &'static str) -> Figure<T> {
        match given {
            Some(value) => Figure { value, assumed: None },
            None => Figure { value: assumed, assumed: Some(reason) },
        }
    }

    /// The comment that gives its source in the file.
    fn source(&self) -> String {
        self.assumed.map_or("given".to_string(), |reason| format!("assumption: {reason}"))
    }
}

/// Bytes from which on a drive came in or after a year.
const YEARS: [(u64, u32); 7] = [
    (4_000_000_000, 1997),
    (30_000_000_000, 2001),
    (80_000_000_000, 2003),
    (250_000_000_000, 2006),
    (1_000_000_000_000, 2009),
    (4_000_000_000_000, 2014),
    (12_000_000_000_000, 2018),
];

/// Bytes from which on drives have physical sectors of 4096 bytes.
const LARGE_SECTORS_FROM: u64 = 1_000_000_000_000;

impl DataSheet {
    /// The drive file.
    ///
    /// *Errors:* a figure that is out of range or contradicts other figures.
    pub fn drive_file(&self) -> Result<String, SheetError> {
        self.check()?;
        let seeks = Seeks::new(self)?;
        let tracks = Tracks::new(self, &seeks)?;
        let curve = seeks.curve(tracks.cylinders)?;
        let mut text = Text::default();
        self.head(&mut text);
        tracks.write(&mut text, &curve);
        text.table("mechanics");
        text.line("rpm", self.rpm, "given");
        seeks.write(&mut text);
        electronics::write(self, &mut text);
        Ok(text.finish())
    }

    fn check(&self) -> Result<(), SheetError> {
        let alone = String::new;
        within("capacity", self.capacity_bytes as f64, [1e6, 1e15], "bytes", alone)?;
        within("speed", self.rpm, [1000.0, 30_000.0], "rpm", alone)?;
        within("rate", self.mb_s, [0.1, 2000.0], "MB/s", alone)?;
        let inner = [0.2 * self.mb_s, self.mb_s];
        within("inner rate", self.inner_mb_s.unwrap_or(self.mb_s), inner, "MB/s", alone)?;
        within("heads", f64::from(self.heads.unwrap_or(1)), [1.0, 64.0], "heads", alone)?;
        let sector = f64::from(self.sector_bytes());
        within("sector", sector, [512.0, 4096.0], "bytes", alone)?;
        let physical = f64::from(self.physical_sector_bytes().value);
        within("physical sector", physical, [sector, 65_536.0], "bytes", alone)?;
        let cache = self.cache_bytes().value as f64;
        within("cache", cache, [16_384.0, 16e9], "bytes", alone)?;
        within("interface rate", self.interface_mb_s.unwrap_or(1.0), [0.1, 1e5], "MB/s", alone)
    }

    fn sector_bytes(&self) -> u32 {
        self.sector_bytes.unwrap_or(512)
    }

    fn physical_sector_bytes(&self) -> Figure<u32> {
        let usual = if self.capacity_bytes >= LARGE_SECTORS_FROM { 4096 } else { 512 };
        Figure::new(
            self.physical_sector_bytes,
            usual.max(self.sector_bytes()),
            "4096 from a terabyte on, else 512",
        )
    }

    /// Logical sectors in a physical one.
    fn sectors_per_physical(&self) -> u32 {
        (self.physical_sector_bytes().value / self.sector_bytes()).max(1)
    }

    /// Logical sectors of the drive: whole physical ones.
    fn capacity_sectors(&self) -> u64 {
        let physical = u64::from(self.sectors_per_physical());
        let wanted = self.capacity_bytes.div_ceil(u64::from(self.sector_bytes()));
        wanted.div_ceil(physical) * physical
    }

    fn head(&self, text: &mut Text) {
        text.comment("Made from the figures of a data sheet. Behind each number: `given`, `derived` from given ones, or an");
        text.comment("`assumption`, which is what shipped drives have in common. Put in its place what you know better.");
        text.word("name", &self.name, "");
        text.word("title", &self.title, "");
        let year = self.year();
        text.line("year", year.value, &year.source());
        match self.class() {
            Some(class) => {
                text.word("evidence", if class.assumed.is_some() { "derived" } else { "data-sheet" }, "");
                text.comment("What a firmware of the kind does: its order and committed commands move the rate of random reads in a queue and their");
                text.comment("tail by up to a third, its window of writes that of random writes by up to three times; `headstack drive firmware` has");
                text.comment("the ranges.");
                text.word("firmware", class.value, &class.source());
            }
            None => text.word("evidence", "data-sheet", ""),
        }
        text.line("capacity_sectors", self.capacity_sectors(), "given: in whole sectors");
        let source = if self.sector_bytes.is_some() { "given" } else { "assumption: as most drives" };
        text.line("sector_bytes", self.sector_bytes(), source);
        let physical = self.physical_sector_bytes();
        text.line("physical_sector_bytes", physical.value, &physical.source());
        text.table("sources");
        text.word("given", &self.given(), "");
    }

    fn year(&self) -> Figure<u32> {
        let usual = YEARS
            .iter()
            .rev()
            .find(|(bytes, _)| self.capacity_bytes >= *bytes)
            .map_or(1990, |(_, year)| *year);
        Figure::new(self.year, usual, "when the first drives of this size came")
    }

    /// The class of firmware; none for a drive that is older than all classes.
    fn class(&self) -> Option<Figure<&str>> {
        if let Some(class) = &self.firmware {
            return Some(Figure { value: class, assumed: None });
        }
        let (year, interface) = (self.year().value, self.interface().value);
        let queued = self.queue_depth().value > 1;
        let class = firmware::usual(year, interface, queued, self.recording)
            .or_else(|| firmware::usual(year, interface, !queued, self.recording))?;
        Some(Figure { value: class, assumed: Some("the class of its year and interface") })
    }

    fn given(&self) -> String {
        let mut given = vec![
            format!("capacity {} bytes", self.capacity_bytes),
            format!("{} rpm", self.rpm),
            format!("{} MB/s", self.mb_s),
            format!("average seek {} ms", self.seek_ms),
        ];
        let mut optional = |words: Option<String>| given.extend(words);
        optional(self.inner_mb_s.map(|rate| format!("{rate} MB/s on the innermost tracks")));
        optional(self.heads.map(|heads| format!("{heads} heads")));
        optional(self.track_to_track_ms.map(|ms| format!("{ms} ms to the next track")));
        optional(self.full_stroke_ms.map(|ms| format!("{ms} ms over all tracks")));
        optional(self.write_seek_ms.map(|ms| format!("average seek of a write {ms} ms")));
        optional(self.cache_bytes.map(|bytes| format!("cache {bytes} bytes")));
        optional(self.write_cache.map(|on| format!("write cache {}", if on { "on" } else { "off" })));
        optional(self.interface.map(|interface| interface.word().to_string()));
        optional(self.interface_mb_s.map(|rate| format!("{rate} MB/s over the interface")));
        optional(self.queue_depth.map(|depth| format!("{depth} commands")));
        given.join(", ")
    }
}

/// A number rounded to `digits` significant digits.
fn significant(value: f64, digits: i32) -> f64 {
    if value == 0.0 {
        return 0.0;
    }
    let scale = 10f64.powi(digits - 1 - value.abs().log10().floor() as i32);
    (value * scale).round() / scale
}
