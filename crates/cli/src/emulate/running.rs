//! Running disks and their servers.

use super::fault::Faults;
use super::plan::Plan;
use crate::failure::{Failure, print_line};
use crate::service::variable;
use crate::units::capacity;
use headstack_host::disk::{Emulator, Volume};
use headstack_host::fuse::{Mount, MountOptions, Unmounted};
use headstack_host::shell::quoted;
use headstack_host::{
    Address, Clock, Disk, DiskHandle, Listener, Rules, Served, Server, Snapshot, Target, Timing,
};
use headstack_model::Instant;
use headstack_nbd::{BlockSizes, Export};
use headstack_workload::VolumeInfo;
use std::ffi::OsString;
use std::io::{self, Write};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

struct Unit {
    plan: Plan,
    /// Where the bytes of each volume are kept, for messages.
    places: Vec<String>,
    disk: Disk,
}

pub(super) struct Ways {
    pub(super) nbd: Option<Address>,
    pub(super) mount: Option<PathBuf>,
    pub(super) allow_other: bool,
}

impl Ways {
    pub(super) fn are_none(&self) -> bool {
        self.nbd.is_none() && self.mount.is_none()
    }
}

pub(super) struct Running {
    units: Vec<Unit>,
    server: Option<Server>,
    mount: Option<Mount>,
    power_cut: Option<Instant>,
    clock: Clock,
}

impl Running {
    /// Starts the disks and their servers.
    ///
    /// *Errors:* an invalid fault; an address or a mount that is not available.
    pub(super) fn start(
        plans: Vec<Plan>,
        volumes: Vec<Vec<(Volume, String)>>,
        faults: &Faults<'_>,
        clock: Clock,
        options: EmulatorOptions,
        ways: &Ways,
    ) -> Result<Running, Failure> {
        let mut units = Vec::new();
        for (plan, volumes) in plans.into_iter().zip(volumes) {
            let places = volumes.iter().map(|(_, place)| place.clone()).collect();
            let emulator = emulator(&plan, volumes, faults, options)?;
            let name = &plan.volumes[0].name;
            let disk = Disk::start(name, emulator, clock, Timing::default());
            let disk = disk.map_err(|error| Failure::Input(format!("{name}: {error}")))?;
            units.push(Unit { plan, places, disk });
        }
        let (server, mount) = (serve(&units, ways.nbd.as_ref())?, mount(&units, ways)?);
        Ok(Running { units, server, mount, power_cut: faults.power_cut(), clock })
    }

    pub(super) fn handles(&self) -> Vec<DiskHandle> {
        self.units.iter().map(|unit| unit.disk.handle()).collect()
    }

    /// Real time until the power cut, if a fault sets one.
    pub(super) fn power_cut(&self) -> Option<Duration> {
        self.power_cut.map(|at| self.clock.real(at.since(self.clock.now())))
    }

    /// Cuts the power of all disks: at the time of a `power-cut` fault if that has passed, else now.
    pub(super) fn cut_power(&self) {
        let (mut lose, mut keep) = (0, Vec::new());
        for unit in &self.units {
            let handle = unit.disk.handle();
            let tells = |emulator: &Emulator, volume| {
                emulator.engine().is_some_and(|engine| engine.tells_media(volume))
            };
            let reported: Vec<bool> = handle.inspect(|emulator| {
                (0..emulator.volumes().len()).map(|volume| tells(emulator, volume)).collect()
            });
            handle.cut_power();
            for (volume, is_told) in handle.volumes().iter().zip(reported) {
                if is_told { lose += 1 } else { keep.push(volume.name.clone()) }
            }
        }
        print_line(&power_cut(lose, &keep));
    }

    /// Prints the disks and how to use them, and the address of the metrics.
    pub(super) fn introduce(&self, metrics: Option<SocketAddr>, out: &mut dyn Write) -> io::Result<()> {
        for unit in &self.units {
            let timing = timing(unit.plan.rig.is_some(), self.clock.speed(), unit.disk.is_real_time());
            for (volume, place) in unit.plan.volumes.iter().zip(&unit.places) {
                let (name, title, size) = (&volume.name, &unit.plan.title, capacity(volume.bytes()));
                writeln!(out, "{name}: {title}; {size}, data in {place}{timing}")?;
                if let Some(uri) = self.uri(name) {
                    writeln!(out, "  {uri}")?;
                }
                if let Some(file) = self.file(name) {
                    let blocks = if volume.sector_bytes > 512 {
                        format!(" -b {}", volume.sector_bytes)
                    } else {
                        String::new()
                    };
                    writeln!(out, "  losetup --find --show --direct-io=on{blocks} {}", quoted(&file))?;
                }
            }
        }
        if self.units.iter().any(|unit| unit.plan.rig.is_some() && !unit.disk.is_real_time()) {
            writeln!(out, "{NOT_REAL_TIME}")?;
        }
        if let Some(address) = metrics {
            writeln!(out, "metrics: http://{address}/metrics")?;
        }
        out.flush()
    }

    fn uri(&self, volume: &str) -> Option<String> {
        self.server.as_ref().map(|server| server.addresses()[0].uri(volume))
    }

    fn file(&self, volume: &str) -> Option<PathBuf> {
        self.mount.as_ref().map(|mount| mount.folder().join(volume))
    }

    /// Environment of a child command: the URI or file of the first disk, and of each by its name.
    pub(super) fn environment(&self) -> Vec<(String, OsString)> {
        let mut found = Vec::new();
        let volumes = self.units.iter().flat_map(|unit| &unit.plan.volumes);
        for (number, VolumeInfo { name, .. }) in volumes.enumerate() {
            let uri = self.uri(name).map(|uri| ("URI", OsString::from(uri)));
            let file = self.file(name).map(|file| ("FILE", file.into_os_string()));
            for (kind, value) in uri.into_iter().chain(file) {
                found.push((format!("HEADSTACK_{kind}_{}", variable(name)), value.clone()));
                if number == 0 {
                    found.push((format!("HEADSTACK_{kind}"), value));
                }
            }
        }
        found
    }

    /// Ends the disks in an orderly way; returns their statistics, with requests in flight included.
    ///
    /// *Errors:* data for which no space was left.
    pub(super) fn end(self) -> (Result<(), Failure>, Vec<Snapshot>) {
        let handles = self.handles();
        drop(self.server);
        let folder = self.mount.as_ref().map(|mount| mount.folder().to_path_buf()).unwrap_or_default();
        if self.mount.map(Mount::unmount) == Some(Unmounted::StillUsed) {
            print_line(&format!("{}: still in use (by a loop device?), and gone now", folder.display()));
        }
        let mut result = Ok(());
        for unit in self.units {
            let name = unit.plan.volumes[0].name.clone();
            let stopped = unit.disk.stop();
            result = result.and(stopped.map_err(|error| Failure::Input(format!("{name}: {error}"))));
        }
        (result, handles.iter().map(DiskHandle::snapshot).collect())
    }
}

/// The message about a power cut. `lose` is the number of volumes whose model knows what is on the media. These lose the rest; `keep` names the
/// others.
fn power_cut(lose: usize, keep: &[String]) -> String {
    let kept = keep.join(", ");
    match (lose, keep) {
        (_, []) => "the power is cut; what was not on the media is lost".to_string(),
        (0, _) => format!("the power is cut; nothing that was acknowledged is lost of {kept}"),
        _ => format!(
            "the power is cut; what was not on the media is lost, but of {kept} nothing that was acknowledged"
        ),
    }
}

/// Describes a disk's speed and whether its thread has real-time priority. Empty for a disk that takes no time.
fn timing(takes_time: bool, speed: f64, has_priority: bool) -> String {
    let with = if has_priority { "with" } else { "without" };
    match takes_time {
        false => String::new(),
        true if speed == 1.0 => format!(", {with} real-time priority"),
        true => format!(", {speed} times as fast as a real one, {with} real-time priority"),
    }
}

/// The remedy if the system refuses real-time priority.
pub(super) const NOT_REAL_TIME: &str = "without real-time priority answers may be late while other programs run. Run it as root, give it CAP_SYS_NICE \
                             (setcap cap_sys_nice+ep), or allow it by `ulimit -r 50`.";

fn serve(units: &[Unit], address: Option<&Address>) -> Result<Option<Server>, Failure> {
    let Some(address) = address else { return Ok(None) };
    let served = units.iter().flat_map(Unit::served).collect();
    let server =
        Listener::bind(address).and_then(|listener| Server::start(vec![listener], served, Rules::default()));
    server.map(Some).map_err(|error| Failure::Input(format!("--nbd {error}")))
}

fn mount(units: &[Unit], ways: &Ways) -> Result<Option<Mount>, Failure> {
    let Some(folder) = &ways.mount else { return Ok(None) };
    let handles: Vec<DiskHandle> = units.iter().map(|unit| unit.disk.handle()).collect();
    let options = MountOptions { allow_other: ways.allow_other, ..MountOptions::default() };
    let mount = Mount::new(folder, &handles, options);
    mount.map(Some).map_err(|error| Failure::Input(format!("--mount {error}")))
}

/// Start options of an emulator.
#[derive(Clone, Copy, Default)]
pub(super) struct EmulatorOptions {
    pub(super) seed: u64,
    /// Whether to discard the copies of an earlier run.
    pub(super) forget_copies: bool,
}

/// The emulator of a disk, from its volumes and where their bytes are kept.
///
/// *Errors:* an invalid fault; a hot block table that cannot be used.
pub(super) fn emulator(
    plan: &Plan,
    volumes: Vec<(Volume, String)>,
    faults: &Faults<'_>,
    options: EmulatorOptions,
) -> Result<Emulator, Failure> {
    let (mut volumes, places): (Vec<Volume>, Vec<String>) = volumes.into_iter().unzip();
    let Some(rig) = &plan.rig else {
        return Ok(Emulator::null(volumes.pop().expect("it is one volume")));
    };
    let mut engine = rig.build(options.seed).map_err(Failure::input)?;
    faults.inject(plan, &mut engine)?;
    let emulator = Emulator::new(engine, volumes, faults.for_plan(plan));
    let mut emulator = emulator.map_err(|name| {
        Failure::Input(format!("--fault power-cut: the model does not tell what is on the media of {name}"))
    })?;
    faults.set_rules(plan, &mut emulator)?;
    emulator.keep_copies(options.forget_copies).map_err(|(number, error)| {
        let place = &places[number];
        Failure::Input(format!("--data {place}: {error}: start with --forget-copies to begin without copies"))
    })?;
    emulator
        .keep_zones()
        .map_err(|(number, error)| Failure::Input(format!("--data {}: {error}", places[number])))?;
    Ok(emulator)
}

impl Unit {
    fn served(&self) -> impl Iterator<Item = Served> {
        let volumes = self.plan.volumes.iter().enumerate();
        volumes.map(|(number, info)| Served {
            export: self.export(info),
            target: Target::Disk { disk: self.disk.handle(), volume: number as u32 },
        })
    }

    /// The description that clients see. It names the queue depth, for which NBD has no field.
    fn description(&self) -> String {
        let drives = self.plan.rig.iter().flat_map(|rig| &rig.resolved().drive);
        let depth = drives.map(|group| group.spec.queue.depth).max();
        let queue = depth.map(|depth| format!(", queue depth {depth}"));
        self.plan.title.clone() + &queue.unwrap_or_default()
    }

    fn export(&self, info: &VolumeInfo) -> Export {
        let usual = Export::new(&info.name, info.bytes());
        let minimum = info.sector_bytes;
        Export {
            description: self.description(),
            blocks: BlockSizes { minimum, preferred: usual.blocks.preferred.max(minimum), ..usual.blocks },
            rotational: self.plan.rig.is_some(),
            // As other servers, it offers FLUSH always; a disk without a write cache answers it at once.
            flush: true,
            // Every emulated drive supports FUA, with which a read or write bypasses the cache.
            fua: self.plan.rig.is_some(),
            ..usual
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn speed_factor_is_printed_unless_it_is_1() {
        assert_eq!(timing(true, 1.0, true), ", with real-time priority");
        assert_eq!(timing(true, 10.0, true), ", 10 times as fast as a real one, with real-time priority");
        assert_eq!(timing(true, 0.5, false), ", 0.5 times as fast as a real one, without real-time priority");
        assert_eq!(timing(false, 10.0, false), "");
    }

    #[test]
    fn power_cut_message_names_the_data_that_is_lost() {
        let raid = ["raid5".to_string()];
        assert!(power_cut(2, &[]).ends_with("what was not on the media is lost"));
        assert!(power_cut(0, &raid).ends_with("nothing that was acknowledged is lost of raid5"));
        assert!(power_cut(1, &raid).ends_with("is lost, but of raid5 nothing that was acknowledged"));
    }
}
