//! A running node: its disks and its server.

use super::file::{DiskPlan, ExportPlan, OrderPlan, Plan, Source};
use crate::catalog;
use crate::emulate::single;
use crate::failure::Failure;
use crate::files;
use crate::live_page::{self, LiveDisk};
use crate::service::patience::when_free;
use crate::service::variable;
use headstack_host::node::{Backend, Node, NodeHandle};
use headstack_host::sysfs::DeviceLocation;
use headstack_host::{
    Address, Disk, Guaranteed, Listener, Promises, Rules, Served, Server, Target, TlsSettings,
};
use headstack_model::Nanos;
use headstack_nbd::{Budget, Export};
use headstack_policy::admission::Ability;
use headstack_policy::slowness::WorstAccess;
use headstack_streams::position::DriveModel;
use headstack_tracks::map;
use std::ffi::OsString;
use std::io;
use std::net::ToSocketAddrs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

struct Unit {
    node: Node,
    /// The emulated disk, if it is one.
    disk: Option<Disk>,
    notes: Vec<String>,
}

pub(super) struct Running {
    units: Vec<Unit>,
    server: Server,
    exports: Vec<ExportPlan>,
    budget: Option<Budget>,
    /// Whether clients of the first listener must use TLS.
    is_secret: bool,
}

impl Running {
    /// Opens the disks, and then admits clients, at the sockets passed by systemd too. Waits briefly for a disk in use, until
    /// `is_end_requested` returns true.
    ///
    /// *Errors:* a disk or an address that is not available.
    pub(super) fn start(
        plan: &Plan,
        handed_over: Vec<Listener>,
        is_end_requested: &dyn Fn() -> bool,
    ) -> Result<Running, Failure> {
        files_of_two_disks(&plan.disks)?;
        let start = |disk| Unit::start(disk, is_end_requested);
        let units = plan.disks.iter().map(start).collect::<Result<Vec<Unit>, Failure>>()?;
        let served: Vec<Served> = plan.exports.iter().map(|export| served(export, &units)).collect();
        let rules = rules(plan)?;
        let wrong = |error: io::Error| Failure::Input(format!("listen: {error}"));
        let budget = rules.budget.clone();
        let own = plan.listen.iter().zip(&plan.tls_uses);
        let own = own.map(|(address, tls)| Ok(Listener::bind(address)?.with_tls(*tls)));
        let listeners = own.chain(handed_over.into_iter().map(Ok)).collect::<io::Result<Vec<Listener>>>();
        let server =
            listeners.and_then(|listeners| Server::start(listeners, served, rules)).map_err(wrong)?;
        Ok(Running { units, server, exports: plan.exports.clone(), budget, is_secret: plan.is_secret(0) })
    }

    /// Applies certificates, limits and `allow` lists of a plan to clients that connect from now on.
    ///
    /// *Errors:* a file that cannot be read; exports other than those that are served.
    pub(super) fn change(&self, plan: &Plan) -> Result<(), Failure> {
        let names = |exports: &[ExportPlan]| {
            exports.iter().map(|export| (export.name.clone(), export.disk)).collect::<Vec<_>>()
        };
        if names(&plan.exports) != names(&self.exports) {
            return Err(Failure::Input(
                "export: others than are served: restart the node for them".to_string(),
            ));
        }
        let allow = plan.exports.iter().map(|export| (export.name.clone(), export.allow.clone())).collect();
        self.server.change(rules(plan)?, &allow).map_err(Failure::input)
    }

    pub(super) fn budget(&self) -> Option<Budget> {
        self.budget.clone()
    }

    pub(super) fn handles(&self) -> Vec<NodeHandle> {
        self.units.iter().map(|unit| unit.node.handle()).collect()
    }

    /// The disks for the live page: the node of each and, where it is emulated, the disk itself.
    pub(super) fn live_disks(&self) -> Vec<LiveDisk> {
        let shown = |unit: &Unit| {
            let node = unit.node.handle();
            let name = node.name().to_string();
            let emulated = unit.disk.as_ref().and_then(|disk| live_page::emulated(disk.handle()));
            // The rig of an emulated disk names its volumes itself, so the heading has the disk's name in the node.
            let emulated = emulated.map(|side| side.with_heading(format!("{name}: the emulated disk")));
            LiveDisk { name, sides: std::iter::once(live_page::scheduled(node)).chain(emulated).collect() }
        };
        self.units.iter().map(shown).collect()
    }

    /// Notes on where a disk differs from its settings, one line each.
    pub(super) fn notes(&self, disk: usize) -> &[String] {
        &self.units[disk].notes
    }

    pub(super) fn addresses(&self) -> &[Address] {
        self.server.addresses()
    }

    /// Environment of a child command: the URI of the first export, and of each by its name.
    pub(super) fn environment(&self) -> Vec<(String, OsString)> {
        let Some(address) = self.server.addresses().first() else { return Vec::new() };
        let uri = |export: &ExportPlan| OsString::from(uri(address, &export.name, self.is_secret));
        let first = self.exports.first().map(|export| ("HEADSTACK_URI".to_string(), uri(export)));
        let each = self.exports.iter();
        let named = each.map(|export| (format!("HEADSTACK_URI_{}", variable(&export.name)), uri(export)));
        first.into_iter().chain(named).collect()
    }

    /// Stops accepting clients, answers pending requests, and writes all acknowledged data to the disks.
    ///
    /// *Errors:* data that could not be written.
    pub(super) fn end(self) -> Result<(), Failure> {
        drop(self.server);
        // Request the stop of all nodes first, because each may have to wait for its clients.
        self.units.iter().for_each(|unit| unit.node.handle().request_stop());
        let mut result = Ok(());
        for Unit { node, disk, .. } in self.units {
            let name = node.handle().name().to_string();
            let wrong = |error| Failure::Input(format!("{name}: {error}"));
            result = result.and(node.stop().map_err(wrong));
            if let Some(disk) = disk {
                result = result.and(disk.stop().map_err(wrong));
            }
        }
        result
    }
}

/// The NBD URI of an export, with TLS if that is required.
pub(super) fn uri(address: &Address, export: &str, is_secret: bool) -> String {
    let uri = address.uri(export);
    if is_secret { uri.replacen("nbd", "nbds", 1) } else { uri }
}

fn rules(plan: &Plan) -> Result<Rules, Failure> {
    let tls = plan.tls.as_ref().map(TlsSettings::load).transpose();
    let tls = tls.map_err(|error| Failure::Input(format!("tls.{error}")))?;
    let promises: Vec<Option<Promises>> =
        plan.disks.iter().map(|disk| disk.ability.map(Promises::new)).collect();
    let guaranteed = |export: &ExportPlan| {
        let promises = promises[export.disk].clone()?;
        Some((export.name.clone(), Guaranteed { guarantee: export.guarantee?, promises }))
    };
    let guarantees = plan.exports.iter().filter_map(guaranteed).collect();
    Ok(Rules { tls, guarantees, ..plan.rules.clone() })
}

fn served(plan: &ExportPlan, units: &[Unit]) -> Served {
    let node = units[plan.disk].node.handle();
    let own = node.export(&plan.name);
    let description = plan.description.clone().unwrap_or_else(|| node.title().to_string());
    let read_only = own.read_only || plan.read_only;
    Served {
        export: Export { description, read_only, allow: plan.allow.clone(), ..own },
        target: Target::Node(node),
    }
}

/// The same disk with the track map of a file.
fn with_tracks(backend: Backend, path: &Path) -> Result<Backend, Failure> {
    let wrong = |error: String| Failure::Input(format!("{}: {error}", path.display()));
    let (identity, map) = map::read(&mut files::open(path)?).map_err(|error| wrong(error.to_string()))?;
    backend.with_tracks(map, identity.sector_bytes).map_err(|error| wrong(error.to_string()))
}

/// The same disk with its commands ordered. If the map that was probed with the drive file belongs to another disk, as its identity says, the
/// order is by block number.
fn with_order(backend: Backend, plan: &OrderPlan, disk: &DiskPlan) -> Result<Backend, Failure> {
    let spec = catalog::load(&plan.drive)?;
    let model = DriveModel::new(&spec).map_err(Failure::input)?;
    let foreign = disk.map.as_deref().map(|map| foreign_map(map, &disk.source)).transpose()?.flatten();
    Ok(match foreign {
        Some(why) => backend.with_order_by_block(plan.order.clone(), &why),
        None => backend.with_order(model, plan.order.clone()),
    })
}

/// The reason why a map, which was probed together with the drive file, is not of this block device; none if it may be.
fn foreign_map(map: &Path, source: &Source) -> Result<Option<String>, Failure> {
    let Source::Path { path, .. } = source else { return Ok(None) };
    let wrong = |error: String| Failure::Input(format!("{}: {error}", map.display()));
    let (identity, _) = map::read(&mut files::open(map)?).map_err(|error| wrong(error.to_string()))?;
    let device = path.metadata().ok().filter(|found| found.rdev() > 0);
    let location = device.and_then(|found| DeviceLocation::find(found.rdev()).ok());
    let error = location.and_then(|location| location.on(&identity).err());
    Ok(error.map(|error| format!("{}: {error}", map.display())))
}

/// Refuses a file that two disks name. Each would find the file in use, as if by another program.
fn files_of_two_disks(disks: &[DiskPlan]) -> Result<(), Failure> {
    let mut met: Vec<((u64, u64, u64), &DiskPlan, &Path)> = Vec::new();
    for disk in disks {
        let Source::Path { path, .. } = &disk.source else { continue };
        // A path that cannot be inspected fails later, when it is opened, and that error has the reason.
        let Ok(found) = path.metadata() else { continue };
        // A device may have several device files with different inodes.
        let identity = if found.rdev() > 0 { (0, 0, found.rdev()) } else { (found.dev(), found.ino(), 0) };
        if let Some((_, other, known)) = met.iter().find(|(known, ..)| *known == identity) {
            return Err(Failure::Input(format!(
                "{}: {} is the same as {} of disk {}: a disk has one name in a node",
                disk.name,
                path.display(),
                known.display(),
                other.name
            )));
        }
        met.push((identity, disk, path));
    }
    Ok(())
}

/// Opens what a node would open, without serving it: disks, maps, drive files and certificates. A disk that another program has, which may
/// be the node, is left alone. An emulated disk begins without its data. Returns notes on each disk.
///
/// *Errors:* what the node would refuse.
pub(super) fn try_to_open(plan: &Plan) -> Result<Vec<Vec<String>>, Failure> {
    files_of_two_disks(&plan.disks)?;
    rules(plan)?;
    if let Some(address) = &plan.metrics {
        let resolved = address.to_socket_addrs();
        resolved.map_err(|error| Failure::Input(format!("metrics {address}: {error}")))?;
    }
    plan.disks.iter().map(notes_on).collect()
}

/// Notes on a disk that would be opened.
fn notes_on(plan: &DiskPlan) -> Result<Vec<String>, Failure> {
    let wrong = |error: io::Error| Failure::Input(format!("{}: {error}", plan.name));
    if let Source::Path { path, opening } = &plan.source
        && let Err(error) = Backend::open(path, *opening)
        && error.kind() == io::ErrorKind::ResourceBusy
    {
        return Ok(vec![format!("not opened: {error}")]);
    }
    let source = match &plan.source {
        Source::Emulated { drive, speed, .. } => {
            Source::Emulated { drive: drive.clone(), data: None, speed: *speed }
        }
        other => other.clone(),
    };
    let (backend, _disk) = open(&DiskPlan { source, ..plan.clone() }, &|| false)?;
    backend.refuse_unused_region().map_err(wrong)?;
    Ok(backend.notes().to_vec())
}

/// Opens a disk, with all that belongs to it.
fn open(plan: &DiskPlan, is_end_requested: &dyn Fn() -> bool) -> Result<(Backend, Option<Disk>), Failure> {
    let wrong = |error: io::Error| Failure::Input(format!("{}: {error}", plan.name));
    let (backend, disk) = match &plan.source {
        Source::Path { path, opening } => {
            let open = || Backend::open(path, *opening);
            (when_free(is_end_requested, open).map_err(wrong)?, None)
        }
        Source::Ram(bytes) => (Backend::memory(*bytes).map_err(wrong)?, None),
        Source::Emulated { drive, data, speed } => {
            let disk = single::start(drive, data.as_deref(), *speed, is_end_requested)?;
            (Backend::emulated(disk.handle(), 0).map_err(wrong)?, Some(disk))
        }
    };
    let backend = match &plan.map {
        Some(path) => with_tracks(backend, path)?,
        None => backend,
    };
    let backend = match &plan.order {
        Some(order) => with_order(backend, order, plan)?,
        None => backend,
    };
    let backend = match &plan.rearrange {
        Some(keys) => backend.with_rearranger(keys).map_err(wrong)?,
        None => backend,
    };
    let backend = match &plan.ability {
        Some(ability) => backend.with_worst_access(worst_access(ability)),
        None => backend,
    };
    Ok((backend, disk))
}

impl Unit {
    fn start(plan: &DiskPlan, is_end_requested: &dyn Fn() -> bool) -> Result<Unit, Failure> {
        let wrong = |error: io::Error| Failure::Input(format!("{}: {error}", plan.name));
        let (backend, disk) = open(plan, is_end_requested)?;
        let notes = backend.notes().to_vec();
        let node = Node::start(&plan.name, backend, plan.streams.clone()).map_err(wrong)?;
        Ok(Unit { node, disk, notes })
    }
}

/// The worst access of a sound disk. It allows three times the worst positioning time, because a sound disk also retries at times.
fn worst_access(ability: &Ability) -> WorstAccess {
    WorstAccess { positioning: Nanos(3 * ability.positioning.0), bandwidth: ability.bandwidth }
}
