//! `headstack serve`: a storage node, which exports disks over NBD through the stream scheduler.

mod check;
mod file;
mod live;
mod metrics;
mod running;
pub(crate) mod state;
mod summary;
mod user;
mod watch;

use crate::failure::{Failure, print_line};
use crate::files;
use crate::keys;
use crate::live_page;
use crate::service::daemon::{AfterEvent, Daemon, DaemonOptions};
use crate::service::endpoint::Endpoint;
use crate::service::events::Event;
use crate::service::lines::Lines;
use crate::service::log::{LogArgs, SERVICE};
use crate::service::{interval, own_socket};
use crate::sim::setup::split;
use crate::units::parse_bytes;
pub(crate) use file::NodeSpec;
use file::{Overlay, Plan};
use headstack_host::{Listener, memory, tell_ready, tell_stopping};
use log::{info, warn};
use running::Running;
use schemars::schema_for;
use state::StatePart;
use std::ffi::OsString;
use std::io::{self, Write};
use std::path::PathBuf;
use std::time::{Duration, Instant};
use toml::{Table, Value};
use watch::Watch;
#[cfg(test)]
pub(crate) use watch::tests::full_node;

/// Serve disks over NBD so that hundreds of sequential streams have their full speed: a storage node.
///
/// Each disk has its own thread and its own bounded memory, in which the node reads streams ahead and coalesces writes. On SIGINT
/// or SIGTERM the node answers all pending requests, writes all acknowledged data to the disks, and ends; on a second signal it
/// ends at once. It also ends when --duration is over, or when the command after `--` ends, with that command's exit code. On
/// SIGHUP it reads CONFIG.toml again: new certificates, limits and `allow` lists apply to clients that connect from then on.
#[derive(clap::Args)]
pub(crate) struct Serve {
    /// A node file: disks, exports, and how they are scheduled (see --keys).
    #[arg(value_name = "CONFIG.toml")]
    config: Option<PathBuf>,
    /// Serve this block device or file, under its name; `memory:SIZE` is a disk in memory. May be repeated.
    #[arg(long, value_name = "PATH")]
    disk: Vec<String>,
    /// Serve an emulated disk of this process: a drive or a rig of one volume. May be repeated.
    #[arg(long, value_name = "DRIVE|RIG")]
    emulate: Vec<String>,
    /// The file that keeps an emulated disk's data, one per disk in the same order. Without it the data are
    /// lost when the process ends.
    #[arg(long, value_name = "FILE", requires = "emulate")]
    data: Vec<String>,
    /// The track map of a disk (`headstack probe --map`), one per disk: first for those of --disk, then for those of --emulate.
    #[arg(long, value_name = "FILE")]
    map: Vec<String>,
    /// Choose the order of each disk's commands in the node: `cylinder`, `position`, or the name of an order. Needs
    /// --drive.
    #[arg(long, value_name = "ORDER")]
    order: Option<String>,
    /// With --order, the largest number of commands at a disk at a time. [default: 1]
    #[arg(long, value_name = "COMMANDS", requires = "order")]
    window: Option<u32>,
    /// The drive file of a disk (`headstack probe -o`), or a shipped drive, one per disk in the order of --map.
    #[arg(long, value_name = "NAME|FILE")]
    drive: Vec<String>,
    /// The address at which the node listens: HOST:PORT (port 0: a free one), :PORT or unix:PATH. May be
    /// repeated.
    #[arg(long, value_name = "ADDRESS")]
    nbd: Vec<String>,
    /// Stream memory of each disk, M. [default: 8M]
    #[arg(long, value_name = "BYTES", value_parser = parse_bytes)]
    memory: Option<u64>,
    /// Override a key of the node file, for all disks: disk.streams.dispatch_set=2. May be repeated.
    #[arg(long, value_name = "KEY=VALUE")]
    set: Vec<String>,
    /// Drop privileges to this user after opening disks and sockets.
    #[arg(long, value_name = "NAME")]
    user: Option<String>,
    /// End after this time: `90s`, `5m`.
    #[arg(long, value_name = "TIME", value_parser = humantime::parse_duration)]
    duration: Option<Duration>,
    /// Print what the disks do on standard error, every second or at this interval.
    #[arg(long, value_name = "INTERVAL", num_args = 0..=1, require_equals = true, default_missing_value = "1s",
        value_parser = interval)]
    stats: Option<Duration>,
    /// Serve figures at http://HOST:PORT: /metrics for Prometheus, /json for `headstack top` and scripts, /explore for
    /// a browser. The default HOST is 127.0.0.1.
    #[arg(long, value_name = "HOST:PORT")]
    metrics: Option<String>,
    #[command(flatten)]
    log: LogArgs,
    /// Check the node file and open what it names (disks, maps, drive files, certificates), and print what the node would
    /// serve. With `=file`, check the file alone: its disks may be those of another machine.
    #[arg(long, value_name = "all|file", num_args = 0..=1, require_equals = true, default_missing_value = "all")]
    check: Option<CheckDepth>,
    /// List every key of a node file: type, unit, default, meaning.
    #[arg(long, exclusive = true)]
    keys: bool,
    /// Print a JSON Schema of a node file, for editors that check and complete TOML.
    #[arg(long, exclusive = true)]
    json_schema: bool,
    /// Run this command while the node serves (its environment has HEADSTACK_URI), and end with its exit code. Without --nbd
    /// the node listens at a temporary socket.
    #[arg(last = true, value_name = "COMMAND")]
    command: Vec<String>,
}

/// What `--check` checks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum CheckDepth {
    /// The file, and what it names.
    All,
    /// The file alone.
    File,
}

impl Serve {
    pub(crate) fn run(&self, out: &mut dyn Write) -> Result<(), Failure> {
        if self.keys || self.json_schema {
            return keys::write(out, &schema_for!(NodeSpec).to_value(), self.json_schema);
        }
        if self.config.is_none() && self.disk.is_empty() && self.emulate.is_empty() {
            let message = "nothing to serve: name a node file (headstack serve CONFIG.toml), or disks and where clients find them \
                           (headstack serve --disk PATH --nbd ADDRESS; see --help)";
            return Err(Failure::Input(message.to_string()));
        }
        let socket = own_socket(!self.nbd.is_empty() || self.config.is_some(), &self.command)?;
        let plan = self.plan(socket.as_ref().map(|folder| folder.path().join("nbd")))?;
        match self.check {
            None => {}
            Some(CheckDepth::File) => return Ok(check::print(&plan, &[], out)?),
            Some(CheckDepth::All) => return Ok(check::print(&plan, &running::try_to_open(&plan)?, out)?),
        }
        let handed_over = Listener::handed_over().map_err(Failure::input)?;
        if plan.listen.is_empty() && handed_over.is_empty() {
            let message = "--nbd ADDRESS, or `listen` in the file, says where clients find the node";
            return Err(Failure::Input(message.to_string()));
        }
        self.serve(&plan, handed_over, out)
    }

    fn serve(&self, plan: &Plan, handed_over: Vec<Listener>, out: &mut dyn Write) -> Result<(), Failure> {
        memory::return_large_allocations();
        let user = plan.user.as_deref().map(user::find).transpose()?;
        if self.command.is_empty() {
            // This comes before other threads start, because they inherit it.
            user::want_no_more_rights();
        }
        let options = DaemonOptions {
            command: &self.command,
            duration: self.duration,
            log: &self.log,
            has_power: false,
            has_files: self.config.is_some(),
        };
        options.run(out, |events| {
            let running = Running::start(plan, handed_over, &|| events.asked().is_some())?;
            let watch = Watch::new(running.handles(), running.budget());
            let start = |address: &str| serve_pages(address, &running, &watch);
            let endpoint = plan.metrics.as_deref().map(start).transpose()?;
            if let Some(user) = user {
                user::become_user(&user, &plan.listen)?;
            }
            Ok(ServingNode { serve: self, plan, running, watch, endpoint, lines: self.stats.map(Lines::new) })
        })
    }

    fn plan(&self, socket: Option<PathBuf>) -> Result<Plan, Failure> {
        let text = self.config.as_deref().map(files::read_text).transpose()?;
        let origin = self.config.as_deref().map(|path| path.display().to_string()).unwrap_or_default();
        let own = socket.map(|path| format!("unix:{}", path.display()));
        file::read(text.as_deref().map(|text| (text, origin.as_str())), &self.overlay(own)?)
    }

    /// The options, as settings over the file.
    fn overlay(&self, socket: Option<String>) -> Result<Overlay, Failure> {
        let mut top = Table::new();
        let listen: Vec<Value> = self.nbd.iter().chain(&socket).map(|text| text.as_str().into()).collect();
        if !listen.is_empty() {
            top.insert("listen".to_string(), Value::Array(listen));
        }
        for (key, value) in [("metrics", &self.metrics), ("user", &self.user)] {
            top.extend(value.iter().map(|value| (key.to_string(), value.as_str().into())));
        }
        let mut set = Vec::new();
        if let Some(bytes) = self.memory {
            let bytes = i64::try_from(bytes).unwrap_or(i64::MAX);
            set.push(("disk.streams.memory_bytes".to_string(), Value::Integer(bytes)));
        }
        set.extend(self.order.iter().map(|order| ("disk.order".to_string(), order.as_str().into())));
        set.extend(self.window.map(|window| ("disk.window".to_string(), Value::Integer(window.into()))));
        for setting in &self.set {
            let wrong = || format!("--set {setting}: must be KEY=VALUE, such as disk.streams.dispatch_set=2");
            let (path, value) = split(setting).ok_or_else(wrong).map_err(Failure::Input)?;
            set.push((path.to_string(), headstack_sim::rig::value(value)));
        }
        Ok(Overlay { top, disks: self.disks()?, set })
    }

    fn disks(&self) -> Result<Vec<Table>, Failure> {
        if self.data.len() > self.emulate.len() {
            let (data, disks) = (self.data.len(), self.emulate.len());
            return Err(Failure::Input(format!("--data: {data} files for {disks} emulated disks")));
        }
        let one = |key: &str, value: Value| Table::from_iter([(key.to_string(), value)]);
        let mut disks = Vec::new();
        for path in &self.disk {
            disks.push(match path.strip_prefix("memory:") {
                None => one("path", path.as_str().into()),
                Some(size) => {
                    let bytes = parse_bytes(size)
                        .and_then(|bytes| i64::try_from(bytes).map_err(|_| "too large".to_string()));
                    one(
                        "ram_bytes",
                        Value::Integer(
                            bytes.map_err(|error| Failure::Input(format!("--disk {path}: {error}")))?,
                        ),
                    )
                }
            });
        }
        for (at, drive) in self.emulate.iter().enumerate() {
            let mut disk = one("emulate", drive.as_str().into());
            disk.extend(self.data.get(at).map(|file| ("data".to_string(), file.as_str().into())));
            disks.push(disk);
        }
        for (key, files) in [("map", &self.map), ("drive", &self.drive)] {
            if let Some(more) = files.get(disks.len()) {
                let message = format!("--{key} {more}: the command line names no disk for it");
                return Err(Failure::Input(message));
            }
            for (disk, file) in disks.iter_mut().zip(files) {
                disk.insert(key.to_string(), file.as_str().into());
            }
        }
        Ok(disks)
    }

    /// Reads the node file again; if it is invalid, nothing changes.
    fn reload(&self, running: &Running) {
        match self.plan(None).and_then(|plan| running.change(&plan)) {
            Ok(()) => {
                info!(target: SERVICE, "read again: certificates, limits and allow lists hold for new clients")
            }
            Err(failure) => warn!(target: SERVICE, "not read again, all holds as before: {failure}"),
        }
    }
}

/// Serves the figures of the disks, and the page that shows them live.
fn serve_pages(address: &str, running: &Running, watch: &Watch) -> Result<Endpoint, Failure> {
    let (live, feeds) = live_page::site(running.live_disks());
    let mut pages = metrics::pages(&watch.seen());
    pages.extend(live);
    Endpoint::start(address, pages, feeds)
}

struct ServingNode<'a> {
    serve: &'a Serve,
    plan: &'a Plan,
    running: Running,
    watch: Watch,
    endpoint: Option<Endpoint>,
    lines: Option<Lines>,
}

impl ServingNode<'_> {
    /// Updates the figures that are due. Returns whether a disk's thread has failed since the last time.
    fn update_figures(&mut self) -> bool {
        let now = self.next_look();
        let mut failed = Vec::new();
        if Some(self.watch.next()) <= now {
            self.watch.refresh();
            failed = self.watch.failures();
        }
        for name in &failed {
            print_line(&format!("{name}: its thread has failed: the node ends"));
        }
        if let Some(lines) = self.lines.as_mut().filter(|lines| Some(lines.next()) <= now) {
            lines.show_all(StatePart(&self.watch.seen().json()).list("disk").map(live::line));
        }
        !failed.is_empty()
    }
}

impl Daemon for ServingNode<'_> {
    fn introduce(&self, out: &mut dyn Write) -> io::Result<()> {
        let at = self.endpoint.as_ref().map(|endpoint| endpoint.address().to_string());
        check::introduce(self.plan, &self.running, at, out)
    }

    fn ready(&self) {
        tell_ready();
    }

    fn environment(&self) -> Vec<(String, OsString)> {
        self.running.environment()
    }

    fn next_look(&self) -> Option<Instant> {
        let watch = self.watch.next();
        Some(self.lines.as_ref().map_or(watch, |lines| lines.next().min(watch)))
    }

    fn handle(&mut self, event: Event) -> AfterEvent {
        match event {
            Event::Reload => self.serve.reload(&self.running),
            Event::Look if self.update_figures() => return AfterEvent::End,
            _ => {}
        }
        AfterEvent::Continue
    }

    fn end(self) -> (Result<(), Failure>, impl FnOnce(&mut dyn Write) -> io::Result<()>) {
        tell_stopping();
        let handles = self.running.handles();
        let ended = self.running.end();
        // The endpoint ends last, so that it reports failed disks until here.
        drop(self.endpoint);
        (ended, move |out: &mut dyn Write| summary::print(&handles, out))
    }
}
