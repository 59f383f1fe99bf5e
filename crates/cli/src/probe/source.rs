//! The disk to probe.

use super::task::Method;
use crate::catalog;
use crate::failure::{self, Failure};
use headstack_host::probe::{Options, ProbeError, RealDisk};
use headstack_host::scsi::{Translating, Translator, sg};
use headstack_model::Nanos;
use headstack_nbd::NbdUri;
use headstack_probe::drive::ProbeTarget;
use headstack_probe::simulated::{Noise, SimulatedDisk};
use headstack_probe::{Answer, DiskInfo, Probe};
use headstack_tracks::map::Identity;
use std::fmt::Display;
use std::path::{Path, PathBuf};

#[derive(clap::Args)]
#[group(skip)]
pub(super) struct SourceArgs {
    /// A block device or a file.
    #[arg(value_name = "DEVICE", required_unless_present_any = ["drive", "nbd"], conflicts_with_all = ["drive", "nbd"])]
    device: Option<PathBuf>,
    /// Probe a simulated drive, in virtual time: a shipped one or a drive file.
    #[arg(long, value_name = "NAME|FILE", conflicts_with = "nbd")]
    drive: Option<String>,
    /// Probe an NBD export: nbd://HOST:PORT/EXPORT or nbd+unix:///EXPORT?socket=PATH.
    #[arg(long, value_name = "URI")]
    nbd: Option<NbdUri>,
    /// Allow writes. The prober writes only the data that it read from the same blocks before, so the disk's content stays the
    /// same, but data that another program writes there meanwhile are lost. A device cannot be mounted during the run; an NBD
    /// export must have no other client.
    #[arg(long)]
    writes: bool,
    /// Probes in flight at a time. [default: 1; for a simulated drive, the depth of its queue]
    #[arg(long, value_name = "COUNT", value_parser = clap::value_parser!(u16).range(1..=32))]
    depth: Option<u16>,
    /// Bytes of a physical sector, if the disk does not report them; 4096 for most disks today.
    #[arg(long, value_name = "BYTES", conflicts_with = "drive")]
    physical_bytes: Option<u32>,
    /// Noise of a simulated drive's clock: standard deviation in microseconds. [default: 8]
    #[arg(long, value_name = "MICROSECONDS", requires = "drive", value_parser = micros)]
    noise_us: Option<f64>,
    /// Share of a simulated drive's answers that are up to 3 ms late. [default: 0.005]
    #[arg(long, value_name = "SHARE", requires = "drive", value_parser = share)]
    late_share: Option<f64>,
    /// Seed of a simulated drive's noise and defects.
    #[arg(long, value_name = "NUMBER", requires = "drive", default_value_t = 0, allow_negative_numbers = true,
        value_parser = crate::units::parse_whole)]
    seed: u64,
}

fn within(text: &str, most: f64) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(number) if (0.0..=most).contains(&number) => Ok(number),
        Ok(_) => Err(format!("must be 0 to {most}")),
        Err(error) => Err(error.to_string()),
    }
}

fn micros(text: &str) -> Result<f64, String> {
    within(text, 10_000.0)
}

fn share(text: &str) -> Result<f64, String> {
    within(text, 1.0)
}

pub(super) struct SourceInfo {
    pub(super) name: String,
    pub(super) identity: Identity,
    /// How it is accessed.
    pub(super) way: &'static str,
    pub(super) is_simulated: bool,
    pub(super) info: DiskInfo,
}

impl SourceInfo {
    pub(super) fn own_name(&self) -> String {
        let Identity { name, serial, .. } = &self.identity;
        [name, serial].into_iter().flatten().cloned().collect::<Vec<_>>().join(" ")
    }
}

pub(super) enum Source {
    Simulated {
        disk: Box<SimulatedDisk>,
        title: String,
        info: DiskInfo,
    },
    Real(Box<RealDisk>),
    /// A disk that also translates addresses.
    Translating(Box<Translating<RealDisk, sg::Device>>),
}

impl SourceArgs {
    pub(super) fn drive(&self) -> Option<&str> {
        self.drive.as_deref()
    }

    pub(super) fn open(&self, method: Method) -> Result<Source, Failure> {
        let options = Options {
            physical_bytes: self.physical_bytes,
            depth: self.depth.map(usize::from),
            writes: self.writes,
            no_real_time: false,
        };
        match (&self.device, &self.nbd, &self.drive) {
            (Some(path), ..) => {
                let disk = RealDisk::open(path, options).map_err(Failure::input)?;
                if method.translates() { translating(path, disk) } else { Ok(Source::Real(Box::new(disk))) }
            }
            (_, Some(uri), _) => {
                let disk = RealDisk::connect(uri, options).map_err(Failure::input)?;
                if self.writes {
                    failure::print_line(&format!(
                        "--writes puts back what was read before: whatever else writes to {} meanwhile loses its data",
                        disk.name()
                    ));
                }
                Ok(Source::Real(Box::new(disk)))
            }
            (.., Some(drive)) => self.simulated(drive),
            _ => Err(Failure::Input("DEVICE, --drive or --nbd says which disk".to_string())),
        }
    }

    fn simulated(&self, drive: &str) -> Result<Source, Failure> {
        let spec = catalog::load(drive)?;
        let noise = Noise {
            sigma: self.noise_us.map_or(Noise::USUAL.sigma, |micros| Nanos((micros * 1000.0) as u64)),
            late_share: self.late_share.unwrap_or(Noise::USUAL.late_share),
            ..Noise::USUAL
        };
        let disk = SimulatedDisk::new(&spec, noise, self.seed).map_err(Failure::input)?;
        let info = disk.info();
        let depth = self.depth.map_or(info.depth, usize::from).min(info.depth);
        let info = DiskInfo { depth, may_write: self.writes, ..info };
        Ok(Source::Simulated { disk: Box::new(disk), title: spec.title.clone(), info })
    }
}

impl Source {
    pub(super) fn source_info(&self) -> SourceInfo {
        let info = self.info();
        match self {
            Source::Simulated { title, .. } => SourceInfo {
                name: title.clone(),
                identity: Identity { name: Some(title.clone()), ..info.identity() },
                way: "simulated",
                is_simulated: true,
                info,
            },
            Source::Real(disk) => told_of(disk, info),
            Source::Translating(disk) => told_of(disk.disk(), info),
        }
    }
}

fn translating(path: &Path, disk: RealDisk) -> Result<Source, Failure> {
    let at = |what: &dyn Display| Failure::Input(format!("{}: {what}", path.display()));
    let device = sg::Device::open(path).map_err(|error| at(&error))?;
    let translator = Translator::new(device).tried().map_err(|error| {
        at(&format_args!("it does not translate addresses ({error}); use --method lattice"))
    })?;
    let translator = translator.for_disk(&disk.info()).map_err(|error| at(&error))?;
    let clock = disk.clock();
    Ok(Source::Translating(Box::new(Translating::new(disk, translator, clock))))
}

fn told_of(disk: &RealDisk, info: DiskInfo) -> SourceInfo {
    SourceInfo {
        name: disk.name().to_string(),
        identity: disk.identity().clone(),
        way: if disk.is_real_time() { "in real time" } else { "without real-time priority" },
        is_simulated: false,
        info,
    }
}

impl ProbeTarget for Source {
    type Error = ProbeError;

    fn info(&self) -> DiskInfo {
        match self {
            Source::Simulated { info, .. } => *info,
            Source::Real(disk) => disk.info(),
            Source::Translating(disk) => disk.info(),
        }
    }

    fn submit(&mut self, probe: Probe) -> Result<(), ProbeError> {
        match self {
            Source::Simulated { disk, .. } => disk.submit(probe).map_err(|never| match never {}),
            Source::Real(disk) => disk.submit(probe),
            Source::Translating(disk) => disk.submit(probe),
        }
    }

    fn wait(&mut self) -> Result<(Probe, Answer), ProbeError> {
        match self {
            Source::Simulated { disk, .. } => disk.wait().map_err(|never| match never {}),
            Source::Real(disk) => disk.wait(),
            Source::Translating(disk) => disk.wait(),
        }
    }
}
