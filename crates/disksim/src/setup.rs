//! A whole set-up (`.parv`): every drive with its path to the host, the driver, arrays, the devices of traces, the load.

use crate::drive::{document, us_of_ms, whole_drive};
use crate::fields::{Fields, Notes};
use crate::lexer::Place;
use crate::parse::{Block, Document, Node, Value};
use crate::queue::{self, Owner};
use crate::topology::{PRINTS, components};
use crate::{logorg, simple, synthetic};
use headstack_model::DriveSpec;
use headstack_model::SpecError;
use headstack_sim::rig::{ControllerCacheSpec, ControllerKind, ControllerSpec, ControllerWrites};
use std::collections::BTreeMap;

pub use crate::spec::{Setup, SetupBus, SetupDrive, SetupLoad, SetupProcess, SetupQueue};

/// Imports the set-up in `text`, the content of the file `origin`. `read` is as for [`import`](crate::import).
///
/// *Errors:* the first syntax error or invalid value, with its file and line; a device that is no disk; no drive.
pub fn import_setup(
    text: &str,
    origin: &str,
    mut read: impl FnMut(&str) -> Result<String, String>,
) -> Result<Setup, SpecError> {
    let document = document(text, origin, &mut read)?;
    let notes = Notes::default();
    let mut setup = Setup { processors: 1, ..Setup::default() };
    ways(&document, origin, &mut read, &notes, &mut setup)?;
    if setup.drives.is_empty() {
        let message = "no drive here: needs an instance of a disksim_disk block";
        return Err(Place::start(origin).error("", message));
    }
    for block in &document.blocks {
        match block.kind.as_str() {
            "disksim_iodriver" => driver(block, &notes, &mut setup)?,
            "disksim_pf" => processors(block, &notes, &mut setup)?,
            "disksim_iosim" => traces(block, &notes, &mut setup)?,
            "disksim_logorg" => logorg::convert(block, &notes, &mut setup)?,
            // Converted last, because it names drives and arrays.
            "disksim_synthio" => continue,
            kind => leave(kind, block, &notes),
        }
    }
    if let Some(block) = document.blocks.iter().find(|block| block.kind == "disksim_synthio") {
        setup.load = Some(synthetic::convert(block, &setup, &notes)?);
    }
    setup.not_carried = notes.into_list();
    setup.not_carried.sort();
    // Several instances of one block give equal notes.
    setup.not_carried.dedup();
    Ok(setup)
}

/// Notes a block that does not describe drives, paths, arrays or load.
fn leave(kind: &str, block: &Block, notes: &Notes) {
    let why = match kind {
        "disksim_disk" | "disksim_simpledisk" | "disksim_bus" | "disksim_ctlr" | "dm_disk" => return,
        "disksim_stats" => PRINTS,
        "disksim_global" => "says what DiskSim draws and prints; seeds are given to each run",
        "disksim_syncset" => "all platters start at the same angle anyway",
        _ => "is not a block known for a set-up",
    };
    let key = block.name.as_ref().map_or(kind.to_string(), |name| format!("{kind} {name}"));
    notes.add(&block.place.file, block.place.line, &key, why);
}

type Above<'a> = (&'a str, &'a Block);

fn ways(
    document: &Document,
    origin: &str,
    read: &mut crate::not_carried::Reader,
    notes: &Notes,
    setup: &mut Setup,
) -> Result<(), SpecError> {
    let components = components(document);
    let mut above = BTreeMap::new();
    for node in &document.topology {
        climb(&components, node, &mut Vec::new(), &mut above);
    }
    let mut read_before: Vec<(&Block, DriveSpec)> = Vec::new();
    for (name, kind) in &document.instances {
        let Some(block) = document.blocks.iter().find(|block| block.name.as_deref() == Some(kind)) else {
            continue;
        };
        match block.kind.as_str() {
            "disksim_disk" | "disksim_simpledisk" => {}
            "memsmodel_mems" | "ssdmodel_ssd" => {
                let message = format!("`{}` is not modelled: every drive here is a disk", block.kind);
                return Err(block.place.error(name, message));
            }
            _ => continue,
        }
        let known = read_before.iter().find(|(one, _)| std::ptr::eq(*one, block));
        let spec = match known {
            Some((_, spec)) => spec.clone(),
            None => {
                let spec = match block.kind.as_str() {
                    "disksim_simpledisk" => simple::convert(block, origin, notes)?,
                    _ => whole_drive(block, origin, read, notes)?,
                };
                spec.check().map_err(|error| block.place.error(&error.key, error.message))?;
                read_before.push((block, spec.clone()));
                spec
            }
        };
        let path = above.get(name.as_str()).map_or(&[][..], Vec::as_slice);
        if path.is_empty() {
            notes.add(&block.place.file, block.place.line, name, "stands in no topology: it has no bus");
        }
        let bus = bus(path, notes, setup)?;
        setup.drives.push(SetupDrive { name: name.clone(), spec, bus });
    }
    Ok(())
}

/// Collects the components above each component, from the host down.
fn climb<'a>(
    components: &BTreeMap<&str, &'a Block>,
    node: &'a Node,
    path: &mut Vec<Above<'a>>,
    above: &mut BTreeMap<&'a str, Vec<Above<'a>>>,
) {
    above.entry(&node.name).or_insert_with(|| path.clone());
    if let Some(block) = components.get(node.name.as_str()) {
        path.push((&node.name, block));
        node.below.iter().for_each(|below| climb(components, below, path, above));
        path.pop();
    }
}

/// The index in the set-up of the bus nearest to a drive.
fn bus(path: &[Above], notes: &Notes, setup: &mut Setup) -> Result<Option<usize>, SpecError> {
    let Some(at) = path.iter().rposition(|(_, block)| block.kind == "disksim_bus") else { return Ok(None) };
    let (name, block) = path[at];
    if let Some(known) = setup.buses.iter().position(|bus| bus.name == name) {
        return Ok(Some(known));
    }
    let controller = controller(&path[..at], notes, setup)?;
    let mut fields = Fields::new(block, notes);
    let bus = SetupBus {
        name: name.to_string(),
        exclusive: fields.optional_number("type")? == Some(1.0),
        read_us_per_sector: us_of_ms(fields.number_or_zero("Read block transfer time")?),
        write_us_per_sector: us_of_ms(fields.number_or_zero("Write block transfer time")?),
        arbitration_us: us_of_ms(fields.optional_number("Arbitration time")?.unwrap_or(0.0)),
        controller,
    };
    fields.skip("Arbitration type", "drives that wait for a bus are not distinguished");
    fields.skip("Print stats", PRINTS);
    fields.finish();
    for (other, block) in &path[..at] {
        further(other, block, notes, setup)?;
    }
    setup.buses.push(bus);
    Ok(Some(setup.buses.len() - 1))
}

/// Notes a bus farther from the drives that takes time: only the nearest is carried over.
fn further(name: &str, block: &Block, notes: &Notes, setup: &Setup) -> Result<(), SpecError> {
    let reported = setup.buses.iter().any(|bus| bus.name == name);
    if block.kind != "disksim_bus" || reported {
        return Ok(());
    }
    let quiet = Notes::default();
    let mut fields = Fields::new(block, &quiet);
    let times = ["Read block transfer time", "Write block transfer time", "Arbitration time"];
    for key in times {
        if fields.optional_number(key)?.is_some_and(|time| time > 0.0) {
            notes.add(
                &block.place.file,
                block.place.line,
                &format!("{} {name}", block.kind),
                "takes time, and only the bus nearest to a drive is carried over",
            );
            break;
        }
    }
    Ok(())
}

/// The index in the set-up of the controller nearest to a bus, if it has any effect.
fn controller(path: &[Above], notes: &Notes, setup: &mut Setup) -> Result<Option<usize>, SpecError> {
    let nearest = path.iter().rev().find(|(_, block)| block.kind == "disksim_ctlr");
    let Some((name, block)) = nearest else { return Ok(None) };
    if let Some(known) = setup.controllers.iter().position(|one| one.name == *name) {
        return Ok(Some(known));
    }
    let mut fields = Fields::new(block, notes);
    let kind = fields.count("type")?;
    if !(1..=3).contains(&kind) {
        return Err(fields.error("type", format!("{kind} is none of 1 to 3")));
    }
    if kind == 2 {
        fields.note(
            "type",
            "2 (driven by the host, as the 53C700) is carried over as 1 (it passes on what comes)",
        );
    }
    let smart = kind == 3;
    let scale = fields.number_or_zero("Scale for delays")?;
    // The pass-through controller's messages take 1 ms, each overhead of the smart one 0.5 ms, times the scale.
    let delay_us = scale * if smart { 500.0 } else { 1000.0 };
    let one = ControllerSpec {
        name: name.to_string(),
        kind: if smart { ControllerKind::Smart } else { ControllerKind::PassThrough },
        us_per_sector: us_of_ms(fields.number_or_zero("Bulk sector transfer time")?),
        delay_us,
        on: None,
        order: if smart { Some(queue(&mut fields, Owner::Controller)?.order) } else { None },
        merge: None,
        // The driver sends as many requests as the controller says it holds; if it does not say, one at a time
        // (studies/validation/disksim.md).
        queue_depth: Some(fields.count_or("Maximum queue length", 0)?.max(1)).filter(|_| smart),
        drive_depth: optional_count(&mut fields, "Max per-disk pending count")?,
        late_choice: false,
        cache: if smart { cache(&mut fields)? } else { None },
    };
    fields.skip("Print stats", PRINTS);
    fields.finish();
    if !smart && one.us_per_sector == 0.0 && one.delay_us == 0.0 {
        return Ok(None);
    }
    setup.controllers.push(one);
    Ok(Some(setup.controllers.len() - 1))
}

fn optional_count(fields: &mut Fields, key: &str) -> Result<Option<u32>, SpecError> {
    if fields.block.params.iter().any(|param| param.key == key) {
        fields.count(key).map(Some)
    } else {
        Ok(None)
    }
}

fn queue(fields: &mut Fields, owner: Owner) -> Result<SetupQueue, SpecError> {
    queue::convert(fields.block("Scheduler")?, fields.notes, owner)
}

fn cache(fields: &mut Fields) -> Result<Option<ControllerCacheSpec>, SpecError> {
    let Some(param) = fields.take("Cache") else { return Ok(None) };
    let Value::Block(block) = &*param.value else {
        return Err(param.place.error("Cache", "needs a block `type { … }`"));
    };
    let mut inner = Fields::new(block, fields.notes);
    let period = inner.optional_number("Flush period")?;
    let periodic = inner.optional_number("Flush policy")? == Some(1.0);
    let cache = ControllerCacheSpec {
        sectors: u64::from(inner.count("Cache size")?),
        line_sectors: optional_count(&mut inner, "Line size")?,
        drive: inner.word("Cache device")?.map(|(name, _)| name.to_string()),
        writes: match inner.optional_number("Write scheme")? {
            Some(3.0) => ControllerWrites::WriteBack,
            _ => ControllerWrites::WriteThrough,
        },
        read_ahead_sectors: 0,
        read_ahead_evicts: false,
        protected_ratio: 0.0,
        flush_period_ms: period.filter(|period| periodic && *period > 0.0),
        flush_idle_ms: inner.optional_number("Flush idle delay")?.filter(|delay| *delay > 0.0),
        flush_cluster_lines: optional_count(&mut inner, "Flush max line cluster")?.unwrap_or(1).max(1),
    };
    inner.note(
        "",
        "of the cache only its size, its line, its device, when a write is done and when dirty data are written are carried over",
    );
    Ok(Some(cache))
}

fn driver(block: &Block, notes: &Notes, setup: &mut Setup) -> Result<(), SpecError> {
    let mut fields = Fields::new(block, notes);
    let key = "Constant access time";
    if let Some(time) = fields.optional_number(key)?.filter(|time| *time != 0.0) {
        fields.note(key, format!("{time} is not carried over: drives answer here, not the driver"));
    }
    setup.queue = queue(&mut fields, Owner::Driver)?;
    setup.one_at_a_time = !fields.flag("Use queueing in subsystem")?;
    fields.skip("type", "there is one kind of driver");
    fields.finish();
    Ok(())
}

fn processors(block: &Block, notes: &Notes, setup: &mut Setup) -> Result<(), SpecError> {
    let mut fields = Fields::new(block, notes);
    setup.processors = fields.count_or("Number of processors", 1)?.max(1);
    let scale = "Process-Flow Time Scale";
    if let Some(factor) = fields.optional_number(scale)?.filter(|factor| *factor != 1.0) {
        fields.note(scale, format!("{factor} is not carried over: it would stretch every time of the load"));
    }
    fields.finish();
    Ok(())
}

fn traces(block: &Block, notes: &Notes, setup: &mut Setup) -> Result<(), SpecError> {
    let mut fields = Fields::new(block, notes);
    let scale = "I/O Trace Time Scale";
    if let Some(factor) = fields.optional_number(scale)?.filter(|factor| *factor != 1.0) {
        fields.note(scale, format!("{factor} has no effect in DiskSim; give it when the trace is replayed"));
    }
    for item in fields.list("I/O Mappings")?.unwrap_or_default() {
        let Value::Block(map) = item else {
            return Err(fields.error("I/O Mappings", "needs a list of blocks"));
        };
        let mut map = Fields::new(map, notes);
        let device = map.count("tracedev")?;
        let Some((drive, _)) = map.word("simdev")? else { return Err(map.error("simdev", "is missing")) };
        for (key, usual) in [("locScale", 512.0), ("sizeScale", 1.0), ("offset", 0.0)] {
            if let Some(value) = map.optional_number(key)?.filter(|value| *value != usual) {
                map.note(key, format!("{value} is not carried over: convert the trace"));
            }
        }
        map.finish();
        if setup.drives.iter().all(|known| known.name != drive) {
            return Err(fields.error("I/O Mappings", format!("`{drive}` is no drive of this set-up")));
        }
        setup.devices.push((u64::from(device), drive.to_string()));
    }
    fields.finish();
    Ok(())
}
