//! `dm_layout_g4` (a layout extracted from a drive, as repeated runs of tracks) into `[geometry.extents]`.

use crate::fields::{Fields, Notes};
use crate::layout::Laid;
use crate::parse::{Block, Value};
use headstack_model::SpecError;
use headstack_model::spec::{
    ExtentRemap, ExtentRun, Extents, GeometrySpec, Layout, Repeated, Sparing, TrackKind,
};

/// Converts a layout whose runs of tracks and of groups must follow each other without a gap.
pub(crate) fn convert(block: &Block, heads: u32, cylinders: u32, notes: &Notes) -> Result<Laid, SpecError> {
    let mut fields = Fields::new(block, notes);
    let tracks = tracks(&mut fields)?;
    let (groups, disk) = groups(&mut fields, &tracks)?;
    let slips = fields.indices("Slips")?;
    if slips.len() % 2 != 0 {
        return Err(fields.error("Slips", "needs pairs of a place and a count"));
    }
    let slips: Vec<(u64, u64)> = slips.chunks_exact(2).map(|pair| (pair[0], pair[1])).collect();
    let remaps = remaps(&mut fields)?;
    let slipped = slips.iter().try_fold(0u64, |sum, (_, count)| sum.checked_add(*count));
    let capacity =
        slipped.and_then(|slipped| disk.places.checked_sub(slipped)).filter(|capacity| *capacity > 0);
    let capacity = capacity.ok_or_else(|| fields.error("Slips", "leave no block"))?;
    fields.finish();
    let needed = u32::try_from(disk.last_cylinder.saturating_add(1)).unwrap_or(0);
    let geometry = GeometrySpec {
        heads,
        cylinders: cylinders.max(needed),
        layout: Layout::Extents,
        sparing: Sparing::None,
        slip_to_end: false,
        range_cylinders: None,
        zones: Vec::new(),
        band_zones: Vec::new(),
        extents: Some(Extents { tracks, groups, slips, remaps }),
    };
    Ok(Laid { geometry, capacity })
}

/// Kinds of tracks: first and last sector that hold data, and sectors of the track.
fn tracks(fields: &mut Fields) -> Result<Vec<TrackKind>, SpecError> {
    let key = "TP";
    let numbers = fields.indices(key)?;
    let whole = |number: u64| u32::try_from(number).ok();
    let kind = |three: &[u64]| {
        let (first_sector, last) = (whole(three[0])?, whole(three[1])?);
        let sectors = last.checked_sub(first_sector)?.checked_add(1)?;
        Some(TrackKind { first_sector, sectors, sectors_per_track: whole(three[2])? })
    };
    if numbers.is_empty() || numbers.len() % 3 != 0 {
        return Err(fields.error(key, "needs three numbers for each kind of track"));
    }
    let kinds: Option<Vec<TrackKind>> = numbers.chunks_exact(3).map(kind).collect();
    kinds.ok_or_else(|| fields.error(key, "the last sector of a kind lies before its first"))
}

#[derive(Clone, Copy, Default)]
struct Extent {
    places: u64,
    /// Relative to the first cylinder of the group.
    last_cylinder: i64,
}

/// The groups of runs, and the extent of the last of them, which is the disk.
fn groups(fields: &mut Fields, tracks: &[TrackKind]) -> Result<(Vec<Vec<ExtentRun>>, Extent), SpecError> {
    let key = "IDX";
    let lists = fields.list(key)?.ok_or_else(|| fields.error(key, "is missing"))?;
    let (mut groups, mut extents) = (Vec::new(), Vec::new());
    for (number, list) in lists.iter().enumerate() {
        let wrong = |message: String| fields.error(key, format!("group {number}: {message}"));
        let Value::List(items) = list else { return Err(wrong("is no list".to_string())) };
        let mut rest = items.as_slice();
        let (mut runs, mut extent) = (Vec::new(), Extent::default());
        while !rest.is_empty() {
            let entry = Entry::take(&mut rest).ok_or_else(|| {
                wrong(format!(
                    "entry {}: needs eight numbers, then `IDX` and one or `TRACK` and two",
                    runs.len()
                ))
            })?;
            let part = entry.part(tracks, &extents);
            let run = part.and_then(|part| entry.run(extent.places, part));
            let run = run.map_err(|message| wrong(format!("entry {}: {message}", runs.len())))?;
            extent.places = extent.places.saturating_add(entry.run_length);
            extent.last_cylinder = extent.last_cylinder.max(entry.last_cylinder(&run, &extents));
            runs.push(run);
        }
        groups.push(runs);
        extents.push(extent);
    }
    let disk = extents.last().copied().ok_or_else(|| fields.error(key, "holds no group"))?;
    Ok((groups, disk))
}

struct Entry {
    first: u64,
    cylinder: i32,
    angle_turns: f64,
    length: u64,
    cylinders: i32,
    angle_step_turns: f64,
    run_length: u64,
    run_cylinders: i64,
    of: Repeated,
}

impl Entry {
    fn take(rest: &mut &[Value]) -> Option<Entry> {
        let integer = |at: usize| match rest.get(at) {
            Some(Value::Int(number)) => Some(*number),
            _ => None,
        };
        let natural = |at: usize| u64::try_from(integer(at)?).ok();
        let index = |at: usize| u32::try_from(integer(at)?).ok();
        let (of, taken) = match rest.get(8)? {
            Value::Word(word) if word == "TRACK" => {
                (Repeated::Track { kind: index(9)?, head: index(10)? }, 11)
            }
            Value::Word(word) if word == "IDX" => (Repeated::Group(index(9)?), 10),
            _ => return None,
        };
        let entry = Entry {
            first: natural(0)?,
            cylinder: i32::try_from(integer(1)?).ok()?,
            angle_turns: crate::fields::number(&rest[2])?,
            length: natural(3)?,
            cylinders: i32::try_from(integer(4)?).ok()?,
            angle_step_turns: crate::fields::number(&rest[5])?,
            run_length: natural(6)?,
            run_cylinders: integer(7)?,
            of,
        };
        *rest = &rest[taken..];
        Some(entry)
    }

    fn part(&self, tracks: &[TrackKind], extents: &[Extent]) -> Result<u64, String> {
        let part = match self.of {
            Repeated::Track { kind, .. } => tracks.get(kind as usize).map(|kind| u64::from(kind.sectors)),
            Repeated::Group(group) => extents.get(group as usize).map(|extent| extent.places),
        };
        part.ok_or("repeats something that does not stand before it".to_string())
    }

    /// The last cylinder of the entry's run, relative to the group's first.
    fn last_cylinder(&self, run: &ExtentRun, extents: &[Extent]) -> i64 {
        let within = match self.of {
            Repeated::Track { .. } => 0,
            Repeated::Group(group) => extents.get(group as usize).map_or(0, |extent| extent.last_cylinder),
        };
        let steps = (i64::from(run.times) - 1) * i64::from(run.cylinder_step.max(0));
        (i64::from(run.cylinder) + steps).saturating_add(within)
    }

    /// The entry as a run; an error if it contradicts its place or its part.
    fn run(&self, place: u64, part: u64) -> Result<ExtentRun, String> {
        if self.first != place {
            return Err(format!("begins at {}, but the entry before it ends at {place}", self.first));
        }
        if part != self.length {
            return Err(format!("is {} long, but what it repeats is {part}", self.length));
        }
        let times = self.run_length.checked_div(part).and_then(|times| u32::try_from(times).ok());
        let Some(times) = times.filter(|times| *times > 0 && self.run_length.is_multiple_of(part)) else {
            return Err(format!("{} is no multiple of its part's {part}", self.run_length));
        };
        let covered = i64::from(times) * i64::from(self.cylinders);
        if covered != self.run_cylinders && covered != -self.run_cylinders {
            return Err(format!("covers {} cylinders, not {}", covered, self.run_cylinders));
        }
        // A single repetition has no step.
        let once = times == 1;
        let direction = if covered == self.run_cylinders { 1 } else { -1 };
        Ok(ExtentRun {
            of: self.of,
            times,
            cylinder: self.cylinder,
            cylinder_step: if once { 0 } else { self.cylinders.saturating_mul(direction) },
            angle_turns: self.angle_turns,
            angle_step_turns: if once { 0.0 } else { self.angle_step_turns },
        })
    }
}

/// Remapped blocks: first block, number of blocks, cylinder, head, sector, and sectors of that track.
fn remaps(fields: &mut Fields) -> Result<Vec<ExtentRemap>, SpecError> {
    let key = "Remaps";
    let numbers = fields.indices(key)?;
    if numbers.len() % 6 != 0 {
        return Err(fields.error(key, "needs six numbers for each"));
    }
    if !numbers.is_empty() {
        fields.note(key, "the sectors of the track are not carried over: they follow from the layout");
    }
    let remap = |six: &[u64]| {
        let whole = |at: usize| u32::try_from(six[at]).ok();
        Some(ExtentRemap {
            lbn: six[0],
            sectors: whole(1)?,
            cylinder: whole(2)?,
            head: whole(3)?,
            sector: whole(4)?,
        })
    };
    let remaps: Option<Vec<ExtentRemap>> = numbers.chunks_exact(6).map(remap).collect();
    remaps.ok_or_else(|| fields.error(key, "a number is out of range"))
}
