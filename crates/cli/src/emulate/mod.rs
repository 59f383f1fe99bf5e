//! `headstack emulate`: disks in real time, for any program.

mod check;
mod control;
mod data;
mod fault;
mod live;
mod metrics;
mod plan;
mod rule;
mod running;
pub(crate) mod single;
mod summary;

use crate::failure::Failure;
use crate::live_page::{self, LiveDisk};
use crate::service::daemon::{AfterEvent, Daemon, DaemonOptions};
use crate::service::endpoint::Endpoint;
use crate::service::events::Event;
use crate::service::log::LogArgs;
use crate::service::machine::ProcessorTime;
use crate::service::{interval, own_socket};
use crate::sim::setup::RigArgs;
use crate::units::parse_bytes;
use check::CheckArgs;
use control::Control;
use data::Data;
pub(crate) use data::stored_zones;
use fault::{Fault, Faults};
use headstack_host::{Address, Clock, memory};
use live::Live;
use plan::Plan;
use running::{EmulatorOptions, Running, Ways};
use std::ffi::OsString;
use std::io::{self, Write};
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// Run disks in real time. Programs use them over NBD or as files, with the response times that arm, rotation, cache and
/// queue cause.
///
/// Each drive has its own thread; drives that share a part of the rig (an array, a controller, a bus) have one thread together. The
/// command runs until a signal ends it (SIGINT, SIGTERM, SIGHUP), until the power is cut (SIGUSR1, or `--fault power-cut@TIME`), until
/// --duration is over, or until the command after `--` ends. In the last case it ends with that command's exit code.
#[derive(clap::Args)]
pub(crate) struct Emulate {
    #[command(flatten)]
    target: EmulateTarget,
    /// Where the data are kept: `memory`, a file, or a folder with one sparse file per volume.
    #[arg(long, value_name = "memory|FILE|FOLDER", default_value = "memory")]
    data: Data,
    /// Start without the copies that a rig with [rearrange] made in an earlier run. The data stay.
    #[arg(long)]
    forget_copies: bool,
    /// Serve the disks over NBD at HOST:PORT (port 0: any that is free) or unix:PATH, each under the name of its volume.
    #[arg(long, value_name = "ADDRESS")]
    nbd: Option<Address>,
    /// Mount the disks on an existing folder, with one file per volume; `losetup --direct-io=on` makes a block device
    /// of such a file.
    #[arg(long, value_name = "FOLDER")]
    mount: Option<PathBuf>,
    /// Allow other users to use the mount.
    #[arg(long, requires = "mount")]
    allow_other: bool,
    /// Inject a fault: power-cut@TIME, in the disk's time (`30s`), ignore-flush, dead@TIME, medium-error@LBN[+COUNT],
    /// slow@LBN[+COUNT]:TURNS, slow-drive@TIME+LENGTH:SHARE%:DELAY or, with the keys of a drive file, slow-drive@{factor = 2},
    /// stalls@{mean_gap_s = 60, mean_stall_ms = 2000} and slow-pattern@{name = "vibration"}. For a fault of one drive, write the
    /// drive's name and a colon in front. May be repeated.
    #[arg(long, value_name = "[DRIVE:]FAULT")]
    fault: Vec<Fault>,
    /// Speed relative to a real disk: 0.001 to 5000.
    #[arg(long, value_name = "FACTOR", default_value_t = 1.0, value_parser = speed)]
    speed: f64,
    /// End after this time, by the machine's clock: `90s`, `5m`.
    #[arg(long, value_name = "TIME", value_parser = humantime::parse_duration)]
    duration: Option<Duration>,
    /// Print what the disks do on standard error, every second or at this interval.
    #[arg(long, value_name = "INTERVAL", num_args = 0..=1, require_equals = true, default_missing_value = "1s",
        value_parser = interval)]
    stats: Option<Duration>,
    /// Serve the figures of --stats to Prometheus at http://HOST:PORT/metrics, and a page that shows the disks at /explore. The default
    /// HOST is 127.0.0.1.
    #[arg(long, value_name = "HOST:PORT")]
    metrics: Option<String>,
    /// Take commands at this Unix socket that set and clear faults while the disks run; see `headstack fault`.
    #[arg(long, value_name = "SOCKET")]
    control: Option<PathBuf>,
    #[command(flatten)]
    log: LogArgs,
    /// Run this command while the disks are served (its environment has HEADSTACK_URI and HEADSTACK_FILE), and end
    /// with its exit code. Without --nbd and --mount the disks are served at a temporary socket.
    #[arg(last = true, value_name = "COMMAND")]
    command: Vec<String>,
    #[command(flatten)]
    check: CheckArgs,
}

/// What is emulated.
#[derive(clap::Args)]
pub(crate) struct EmulateTarget {
    /// Drives and rigs: files, shipped ones, or `null` for a disk that takes no time.
    #[arg(value_name = "DRIVE|RIG", required = true)]
    names: Vec<String>,
    #[command(flatten)]
    rig: RigArgs,
    /// Size of the disk `null`. [default: 100G]
    #[arg(long, value_name = "BYTES", value_parser = parse_bytes)]
    size: Option<u64>,
}

fn speed(text: &str) -> Result<f64, String> {
    let factor = text.parse::<f64>().map_err(|error| error.to_string())?;
    Clock::new(factor).map(|_| factor)
}

impl Emulate {
    pub(crate) fn run(&self, out: &mut dyn Write) -> Result<(), Failure> {
        if self.check.is_wanted()? {
            return self.check.run(&self.target, self.speed, out);
        }
        let socket = own_socket(self.nbd.is_some() || self.mount.is_some(), &self.command)?;
        let own = socket.as_ref().map(|folder| Address::Unix(folder.path().join("nbd")));
        let ways =
            Ways { nbd: self.nbd.clone().or(own), mount: self.mount.clone(), allow_other: self.allow_other };
        if ways.are_none() {
            return Err(Failure::Input(
                "--nbd ADDRESS or --mount FOLDER says where programs find the disks".to_string(),
            ));
        }
        let options = DaemonOptions {
            command: &self.command,
            duration: self.duration,
            log: &self.log,
            has_power: true,
            has_files: false,
        };
        memory::return_large_allocations();
        options.run(out, |events| {
            let began = ProcessorTime::now();
            let running = self.start(&ways, &|| events.asked().is_some())?;
            let endpoint = self.metrics.as_ref().map(|address| serve_pages(address, &running)).transpose()?;
            let control = self.control.as_deref().map(|path| Control::start(path, running.handles()));
            let control = control.transpose()?;
            let live = self.stats.map(|interval| Live::new(interval, running.handles()));
            events.power_cut_at(running.power_cut());
            Ok(Emulation { running, endpoint, control, live, began })
        })
    }

    fn start(&self, ways: &Ways, is_end_requested: &dyn Fn() -> bool) -> Result<Running, Failure> {
        let plans = plan::plans(&self.target)?;
        if self.forget_copies && !plans.iter().any(Plan::rearranges) {
            let why = "no rig that is emulated has [rearrange], so there are no copies to forget";
            return Err(Failure::Input(format!("--forget-copies: {why}; leave it out")));
        }
        let volumes = self.data.volumes(&plans, is_end_requested)?;
        data::refuse_regions(&volumes)?;
        let clock = Clock::new(self.speed).map_err(Failure::Input)?;
        let faults = Faults(&self.fault);
        faults.check(&plans)?;
        let options = EmulatorOptions { seed: self.target.rig.seed, forget_copies: self.forget_copies };
        Running::start(plans, volumes, &faults, clock, options, ways)
    }
}

/// Serves the metrics of the disks, and the page that shows them live. A disk that takes no time has nothing to show.
fn serve_pages(address: &str, running: &Running) -> Result<Endpoint, Failure> {
    let shown = running.handles().into_iter().filter_map(|disk| {
        let name = disk.volumes()[0].name.clone();
        Some(LiveDisk { name, sides: vec![live_page::emulated(disk)?] })
    });
    let (mut pages, feeds) = live_page::site(shown.collect());
    pages.insert(0, metrics::page(running.handles()));
    Endpoint::start(address, pages, feeds)
}

struct Emulation {
    running: Running,
    endpoint: Option<Endpoint>,
    control: Option<Control>,
    live: Option<Live>,
    began: Option<ProcessorTime>,
}

impl Daemon for Emulation {
    fn introduce(&self, out: &mut dyn Write) -> io::Result<()> {
        self.running.introduce(self.endpoint.as_ref().map(Endpoint::address), out)
    }

    fn environment(&self) -> Vec<(String, OsString)> {
        self.running.environment()
    }

    fn next_look(&self) -> Option<Instant> {
        self.live.as_ref().map(Live::next)
    }

    fn handle(&mut self, event: Event) -> AfterEvent {
        match event {
            Event::PowerCut => {
                self.running.cut_power();
                AfterEvent::EndWithoutCommand
            }
            _ => {
                if let Some(live) = &mut self.live {
                    live.show();
                }
                AfterEvent::Continue
            }
        }
    }

    fn end(self) -> (Result<(), Failure>, impl FnOnce(&mut dyn Write) -> io::Result<()>) {
        drop((self.endpoint, self.control));
        let (ended, snapshots) = self.running.end();
        let stolen = self.began.and_then(ProcessorTime::stolen_share);
        (ended, move |out: &mut dyn Write| summary::print(&snapshots, stolen, out))
    }
}
