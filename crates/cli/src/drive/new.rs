//! `headstack drive new`.

use crate::failure::Failure;
use crate::files;
use crate::units::{capacity, parse_bytes, parse_capacity};
use headstack_model::firmware::Recording;
use headstack_model::sheet::DataSheet;
use headstack_model::spec::Interface;
use std::io::Write;
use std::path::{Path, PathBuf};

/// Make a drive file from the figures of a data sheet.
///
/// For each number the file says whether it was given, derived from given ones, or assumed. Assumed values are those that
/// the shipped drives have in common: replace them where you know better ones, and run `headstack drive check`.
#[derive(clap::Args)]
pub(crate) struct New {
    /// Capacity: in bytes, or with a unit, for example 10TB (powers of 1000).
    #[arg(long, value_name = "SIZE", value_parser = parse_capacity)]
    capacity: u64,
    /// Spindle speed, in turns a minute.
    #[arg(long, value_name = "RPM")]
    rpm: f64,
    /// Sustained rate on the outermost tracks, in MB/s.
    #[arg(long, value_name = "MB/S")]
    mb_s: f64,
    /// Average seek of a read, in ms.
    #[arg(long, value_name = "MS")]
    seek: f64,
    /// Recorded surfaces.
    #[arg(long, value_name = "COUNT")]
    heads: Option<u32>,
    /// Sustained rate on the innermost tracks, in MB/s.
    #[arg(long, value_name = "MB/S")]
    inner_mb_s: Option<f64>,
    /// Seek of a read to the next track, in ms.
    #[arg(long, value_name = "MS")]
    track_to_track: Option<f64>,
    /// Seek of a read over all tracks (full stroke), in ms.
    #[arg(long, value_name = "MS")]
    full_stroke: Option<f64>,
    /// Average seek of a write, in ms.
    #[arg(long, value_name = "MS")]
    write_seek: Option<f64>,
    /// Size of the buffer: in bytes, or with a unit, for example 256MB (powers of 1024).
    #[arg(long, value_name = "SIZE", value_parser = parse_bytes)]
    cache: Option<u64>,
    /// Whether a write completes once its data are in the buffer.
    #[arg(long, value_name = "ON|OFF", value_parser = on_or_off)]
    write_cache: Option<bool>,
    /// Interface of the drive: sata, ide, scsi, sas, fc, ssa or smd.
    #[arg(long, value_name = "NAME", value_parser = interface)]
    interface: Option<Interface>,
    /// Rate of the interface, in MB/s.
    #[arg(long, value_name = "MB/S")]
    interface_mb_s: Option<f64>,
    /// Commands that may be outstanding.
    #[arg(long, value_name = "COUNT")]
    queue_depth: Option<u32>,
    /// Year of introduction.
    #[arg(long, value_name = "YEAR")]
    year: Option<u32>,
    /// How the tracks are recorded: conventional, drive-managed (SMR) or host-managed (SMR).
    #[arg(long, value_name = "KIND", default_value = "conventional", value_parser = recording)]
    recording: Recording,
    /// Class of firmware (headstack drive firmware). [default: that of the year, interface and recording]
    #[arg(long, value_name = "CLASS")]
    firmware: Option<String>,
    /// Arms. With 2, the file is one arm's half of the disk, and its head says how a rig puts both together.
    #[arg(long, value_name = "COUNT", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=2))]
    actuators: u32,
    /// Bytes in a logical sector.
    #[arg(long, value_name = "BYTES")]
    sector: Option<u32>,
    /// Bytes in a physical sector.
    #[arg(long, value_name = "BYTES")]
    physical_sector: Option<u32>,
    /// The drive's name: lower case, digits, hyphens. [default: the name of FILE, or new-drive]
    #[arg(long)]
    name: Option<String>,
    /// Title of the drive: maker, model and capacity.
    #[arg(long)]
    title: Option<String>,
    /// Where to write the drive file. [default: standard output]
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
}

impl New {
    pub(super) fn run(&self, out: &mut dyn Write) -> Result<(), Failure> {
        let sheet = self.sheet();
        let file = self.head() + &sheet.drive_file().map_err(|error| Failure::Input(error.to_string()))?;
        headstack_model::DriveSpec::parse(&file, &sheet.name).map_err(Failure::input)?;
        match &self.output {
            Some(path) => files::write_whole(path, file.as_bytes()),
            None => Ok(out.write_all(file.as_bytes())?),
        }
    }

    /// What the file of one arm of several says first.
    fn head(&self) -> String {
        match self.actuators {
            1 => String::new(),
            _ => HALF.to_string(),
        }
    }

    fn sheet(&self) -> DataSheet {
        let arms = u64::from(self.actuators);
        let usual = format!("{}, {} rpm, from a data sheet", capacity(self.capacity), self.rpm);
        DataSheet {
            name: self.name.clone().unwrap_or_else(|| name_of(self.output.as_deref())),
            title: self.title.clone().unwrap_or(usual),
            capacity_bytes: self.capacity / arms,
            rpm: self.rpm,
            mb_s: self.mb_s / arms as f64,
            seek_ms: self.seek,
            inner_mb_s: self.inner_mb_s.map(|rate| rate / arms as f64),
            heads: self.heads.map(|heads| (heads / self.actuators).max(1)),
            track_to_track_ms: self.track_to_track,
            full_stroke_ms: self.full_stroke,
            write_seek_ms: self.write_seek,
            cache_bytes: self.cache.map(|bytes| bytes / arms),
            write_cache: self.write_cache,
            interface: self.interface,
            interface_mb_s: self.interface_mb_s,
            queue_depth: self.queue_depth,
            sector_bytes: self.sector,
            physical_sector_bytes: self.physical_sector,
            year: self.year,
            recording: self.recording,
            firmware: self.firmware.clone(),
        }
    }
}

const HALF: &str = "# One arm's half of a disk with two arms. A rig has both with `count = 2` in `[drive]`, one volume of both, and their link:
# `headstack rig show exos-2x18-sata` is one.
";

fn recording(text: &str) -> Result<Recording, String> {
    let named = Recording::ALL.into_iter().find(|(word, _)| *word == text);
    let words = || Recording::ALL.map(|(word, _)| word).join(", ");
    named
        .map(|(_, recording)| recording)
        .ok_or_else(|| format!("no kind of recording is called so; there are {}", words()))
}

fn name_of(file: Option<&Path>) -> String {
    let stem = file.and_then(Path::file_stem).map(|stem| stem.to_string_lossy().to_ascii_lowercase());
    let named = |c: char| if c.is_ascii_alphanumeric() { c } else { '-' };
    match stem.map(|stem| stem.chars().map(named).collect::<String>()) {
        Some(name) if name.contains(|c| c != '-') => name,
        _ => "new-drive".to_string(),
    }
}

fn interface(text: &str) -> Result<Interface, String> {
    let words = || Interface::ALL.map(Interface::word).join(", ");
    let named = Interface::ALL.into_iter().find(|interface| interface.word() == text);
    named.ok_or_else(|| format!("no interface is called so; there are {}", words()))
}

fn on_or_off(text: &str) -> Result<bool, String> {
    match text {
        "on" => Ok(true),
        "off" => Ok(false),
        _ => Err("on or off".to_string()),
    }
}
