//! A checked node file, with all names resolved.

use super::spec::{AbilitySpec, DiskSpec, ExportSpec, NodeSpec, RULES};
use crate::service::hosts::with_host;
use crate::units;
use headstack_host::node::Opening;
use headstack_host::{Address, Rules, TlsSettings, TlsUse, memory};
use headstack_model::Nanos;
use headstack_model::spec::{Fault, did_you_mean};
use headstack_nbd::Allow;
use headstack_policy::admission::{Ability, Admission, Guarantee};
use headstack_streams::position::PositionOrder;
use headstack_streams::rearrange::RearrangeSpec;
use headstack_streams::streams::Config;
use std::fmt;
use std::path::PathBuf;

#[derive(Clone, Debug)]
pub(crate) struct Plan {
    pub(crate) listen: Vec<Address>,
    /// For each address, whether clients must use TLS there, if that differs from the default.
    pub(crate) tls_uses: Vec<Option<TlsUse>>,
    pub(crate) metrics: Option<String>,
    pub(crate) user: Option<String>,
    pub(crate) tls: Option<TlsSettings>,
    /// Settings for all clients. Those of TLS are missing, because its files are not read yet.
    pub(crate) rules: Rules,
    pub(crate) disks: Vec<DiskPlan>,
    pub(crate) exports: Vec<ExportPlan>,
}

#[derive(Clone, Debug)]
pub(crate) struct DiskPlan {
    pub(crate) name: String,
    pub(crate) source: Source,
    pub(crate) read_only: bool,
    pub(crate) streams: Config,
    pub(crate) map: Option<PathBuf>,
    pub(crate) order: Option<OrderPlan>,
    /// Settings of block rearrangement, if the disk has it.
    pub(crate) rearrange: Option<RearrangeSpec>,
    /// Worst-case ability on which guarantees are based.
    pub(crate) ability: Option<Ability>,
}

/// The order of a disk's commands, and the drive file that it uses.
#[derive(Clone, Debug)]
pub(crate) struct OrderPlan {
    pub(crate) order: PositionOrder,
    pub(crate) drive: String,
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Source {
    Path {
        path: PathBuf,
        opening: Opening,
    },
    Emulated {
        drive: String,
        data: Option<PathBuf>,
        speed: f64,
    },
    /// A disk in memory of this number of bytes.
    Ram(u64),
}

impl Source {
    fn path(&self) -> Option<&PathBuf> {
        match self {
            Source::Path { path, .. } => Some(path),
            _ => None,
        }
    }
}

impl fmt::Display for Source {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Source::Path { path, .. } => write!(to, "{}", path.display()),
            Source::Ram(bytes) => write!(to, "{} of memory", units::memory(*bytes)),
            Source::Emulated { drive, data: None, .. } => write!(to, "{drive}, emulated, data in memory"),
            Source::Emulated { drive, data: Some(data), .. } => {
                write!(to, "{drive}, emulated, data in {}", data.display())
            }
        }
    }
}

#[derive(Clone, Debug)]
pub(crate) struct ExportPlan {
    pub(crate) name: String,
    pub(crate) disk: usize,
    pub(crate) description: Option<String>,
    pub(crate) read_only: bool,
    pub(crate) allow: Vec<Allow>,
    pub(crate) guarantee: Option<Guarantee>,
}

/// Checks a node file and resolves its names.
pub(super) fn plan(spec: &NodeSpec) -> Result<Plan, Fault> {
    RULES.check(spec, "")?;
    let disks = disks(&spec.disk)?;
    let exports = exports(&spec.export, &disks)?;
    let each = spec.listen.iter().enumerate();
    let listen = each.map(|(at, text)| {
        text.parse().map_err(|error: headstack_host::AddressError| {
            Fault::new(format!("listen[{at}]"), error.to_string())
        })
    });
    let listen = listen.collect::<Result<Vec<Address>, Fault>>()?;
    Ok(Plan {
        tls_uses: tls_uses(spec.tls.as_ref(), &listen)?,
        listen,
        metrics: spec.metrics.as_deref().map(with_host),
        user: spec.user.clone(),
        tls: spec.tls.clone(),
        rules: spec.limits.rules()?,
        disks,
        exports,
    })
}

fn tls_uses(tls: Option<&TlsSettings>, listen: &[Address]) -> Result<Vec<Option<TlsUse>>, Fault> {
    let mut uses = vec![None; listen.len()];
    for (text, tls_use) in tls.iter().flat_map(|tls| &tls.listeners) {
        let place = listen.iter().position(|address| text.parse().as_ref() == Ok(address));
        let Some(place) = place else {
            let known: Vec<String> = listen.iter().map(ToString::to_string).collect();
            let hint = did_you_mean(text, known.iter().map(String::as_str));
            return Err(Fault::new("tls.listeners", format!("`{text}` is no address of `listen`{hint}")));
        };
        uses[place] = Some(*tls_use);
    }
    Ok(uses)
}

impl Plan {
    /// Whether the clients of a listener must use TLS. The listeners of `listen` have the first indices; those passed by systemd follow.
    pub(crate) fn is_secret(&self, listener: usize) -> bool {
        match self.tls_uses.get(listener).copied().flatten() {
            Some(tls_use) => tls_use == TlsUse::Required,
            None => self.tls.as_ref().is_some_and(|tls| tls.required),
        }
    }
}

fn disks(specs: &[DiskSpec]) -> Result<Vec<DiskPlan>, Fault> {
    if specs.is_empty() {
        return Err(Fault::new("disk", "there is none: `[[disk]]` with `path = \"…\"` is one"));
    }
    let mut disks: Vec<DiskPlan> = Vec::new();
    for (at, spec) in specs.iter().enumerate() {
        let key = |key: &str| format!("disk[{at}].{key}");
        let disk = disk(at, spec)?;
        if disks.iter().any(|other| other.name == disk.name) {
            return Err(Fault::new(key("name"), format!("two disks are called `{}`", disk.name)));
        }
        // Two threads that each coalesce writes would overwrite each other's data.
        if let Source::Path { path, .. } = &disk.source
            && let Some(other) = disks.iter().find(|other| other.source.path() == Some(path))
        {
            let message = format!("`{}` is disk `{}` already", path.display(), other.name);
            return Err(Fault::new(key("path"), message));
        }
        disks.push(disk);
    }
    Ok(disks)
}

fn disk(at: usize, spec: &DiskSpec) -> Result<DiskPlan, Fault> {
    let key = |key: &str| format!("disk[{at}].{key}");
    let source = match (&spec.path, &spec.emulate, spec.ram_bytes) {
        (Some(path), None, None) => {
            if let Some(size) = path.to_str().and_then(|path| path.strip_prefix("memory:")) {
                let message = format!(
                    "a disk in memory is `ram_bytes = BYTES`; `memory:{size}` is for --disk on the command line"
                );
                return Err(Fault::new(key("path"), message));
            }
            let DiskSpec { read_only, buffered, threads, .. } = *spec;
            Source::Path { path: path.clone(), opening: Opening { read_only, buffered, threads } }
        }
        (None, Some(drive), None) => {
            Source::Emulated { drive: drive.clone(), data: spec.data.clone(), speed: spec.speed }
        }
        (None, None, Some(bytes)) => match memory::allowed().filter(|allowed| bytes > *allowed) {
            Some(allowed) => {
                let (bytes, allowed) = (units::memory(bytes), units::memory(allowed));
                let message = format!("{bytes} of memory cannot be held: this process may use {allowed}");
                return Err(Fault::new(key("ram_bytes"), message));
            }
            None => Source::Ram(bytes),
        },
        _ => {
            return Err(Fault::new(
                format!("disk[{at}]"),
                "one of `path`, `emulate` and `ram_bytes` is needed, and only one",
            ));
        }
    };
    if spec.data.is_some() && spec.emulate.is_none() {
        return Err(Fault::new(key("data"), "is for an emulated disk"));
    }
    spec.streams.check().map_err(|fault| fault.below(&key("streams")))?;
    let ability = spec.ability.map(|ability| of_disk(ability, &spec.streams));
    let file = spec.path.as_ref().and_then(|path| path.file_name());
    let own = file.map_or(format!("disk{at}"), |name| name.to_string_lossy().into_owned());
    let name = spec.name.clone().unwrap_or(own);
    let (map, streams) = (spec.map.clone(), spec.streams.clone());
    let order = order(spec).map_err(|fault| fault.below(&format!("disk[{at}]")))?;
    let rearrange = rearrange(spec).map_err(|fault| fault.below(&format!("disk[{at}]")))?;
    Ok(DiskPlan { name, source, read_only: spec.read_only, streams, map, order, rearrange, ability })
}

/// The settings of block rearrangement, if the disk has it.
fn rearrange(spec: &DiskSpec) -> Result<Option<RearrangeSpec>, Fault> {
    let Some(copies) = &spec.rearrange else { return Ok(None) };
    if spec.ram_bytes.is_some() {
        return Err(Fault::new(
            "rearrange",
            "a disk in memory (`ram_bytes`) has no reserved region: remove the table",
        ));
    }
    if spec.read_only {
        return Err(Fault::new(
            "rearrange",
            "the disk is `read_only`, and its hot block table must be written: remove `read_only` or this table",
        ));
    }
    Ok(Some(copies.keys()))
}

/// The order of a disk's commands, if it has one.
fn order(spec: &DiskSpec) -> Result<Option<OrderPlan>, Fault> {
    let Some(text) = &spec.order else {
        let unused = [("drive", spec.drive.is_some()), ("window", spec.window.is_some())];
        return match unused.into_iter().find(|(_, is_given)| *is_given) {
            Some((key, _)) => Err(Fault::new(key, "is for an `order`, and there is none")),
            None => Ok(None),
        };
    };
    let order = PositionOrder::new(text, spec.window.unwrap_or(1))
        .map_err(|error| Fault::new("order", error.to_string()))?;
    let no_drive = "needs `drive`, a drive file of the disk: `headstack probe -o FILE.toml` writes one (a track map has no cylinders)";
    let drive = spec.drive.clone().ok_or_else(|| Fault::new("order", no_drive))?;
    Ok(Some(OrderPlan { order, drive }))
}

/// The ability of a disk with these stream settings.
fn of_disk(spec: AbilitySpec, streams: &Config) -> Ability {
    let AbilitySpec { bandwidth_bytes_per_s, positioning_ms, share } = spec;
    let positioning = Nanos::from_ms(positioning_ms);
    Ability { bandwidth: bandwidth_bytes_per_s, positioning, memory: streams.memory_bytes, share }
}

/// Longest response time of a guarantee in ms: a day.
const DAY_MS: f64 = 86_400_000.0;

fn exports(specs: &[ExportSpec], disks: &[DiskPlan]) -> Result<Vec<ExportPlan>, Fault> {
    if specs.is_empty() {
        let each = disks.iter().enumerate();
        return Ok(each
            .map(|(number, disk)| ExportPlan {
                name: disk.name.clone(),
                disk: number,
                description: None,
                read_only: disk.read_only,
                allow: Vec::new(),
                guarantee: None,
            })
            .collect());
    }
    let mut exports: Vec<ExportPlan> = Vec::new();
    for (at, spec) in specs.iter().enumerate() {
        let Some(number) = disks.iter().position(|disk| disk.name == spec.disk) else {
            let hint = did_you_mean(&spec.disk, disks.iter().map(|disk| disk.name.as_str()));
            let message = format!("there is no disk `{}`{hint}", spec.disk);
            return Err(Fault::new(format!("export[{at}].disk"), message));
        };
        if let Some(guarantee) = spec.guarantee {
            let wrong = |message| Fault::new(format!("export[{at}].guarantee"), message);
            if !(guarantee.response_ms > 0.0 && guarantee.response_ms <= DAY_MS) {
                let message = format!("{} is outside 0 (not included) to {DAY_MS}", guarantee.response_ms);
                return Err(Fault::new(format!("export[{at}].guarantee.response_ms"), message));
            }
            let ability = disks[number].ability;
            let ability = ability
                .ok_or_else(|| wrong(format!("disk `{}` has no `ability` to hold it against", spec.disk)))?;
            let alone = Admission::new(ability).admit(guarantee);
            if let Err(refusal) = alone {
                return Err(wrong(format!("it cannot be kept even once: {refusal}")));
            }
        }
        let name = spec.name.clone().unwrap_or(spec.disk.clone());
        if exports.iter().any(|other| other.name == name) {
            return Err(Fault::new(format!("export[{at}].name"), format!("two exports are called `{name}`")));
        }
        exports.push(ExportPlan {
            name,
            disk: number,
            description: spec.description.clone(),
            read_only: spec.read_only || disks[number].read_only,
            allow: spec.allow.clone(),
            guarantee: spec.guarantee,
        });
    }
    Ok(exports)
}
