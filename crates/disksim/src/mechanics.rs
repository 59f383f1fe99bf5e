//! `dm_mech_g1` and its seek curves into `[mechanics]`.

use crate::fields::{Fields, Notes};
use crate::lexer::Place;
use crate::not_carried::Reader;
use crate::parse::Block;
use headstack_model::SpecError;
use headstack_model::spec::{MechanicsSpec, SeekPiece, SeekSpec, ZeroLatency};

/// Converts a mechanics block; `top` is the first file of the import.
pub(crate) fn convert(
    block: &Block,
    cylinders: u32,
    top: &str,
    read: &mut Reader,
    notes: &Notes,
) -> Result<MechanicsSpec, SpecError> {
    if block.kind != "dm_mech_g1" {
        return Err(block
            .place
            .error("Mechanical Model", format!("`{}` is not read; dm_mech_g1 is", block.kind)));
    }
    let mut fields = Fields::new(block, notes);
    if let Some((access, param)) = fields.word("Access time type")?
        && access != "trackSwitchPlusRotation"
    {
        let why =
            format!("`{access}` is not modelled: seek and rotation are always computed, as DiskSim 4.0 does");
        notes.add(&param.place.file, param.place.line, &param.key, why);
    }
    fields.skip("Constant access time", "DiskSim 4.0 reads it and does nothing with it");
    let seek = seek(&mut fields, cylinders, top, read)?;
    if fields.optional_number("Percent error in rpms")?.is_some_and(|percent| percent != 0.0) {
        let why = "the bound of a random deviation that DiskSim 4.0 does not apply; set rpm_deviation_percent manually";
        fields.note("Percent error in rpms", why);
    }
    let mut spec = plain(fields.number("Rotation speed (in rpms)")?, seek);
    spec.head_switch_ms = fields.number_or_zero("Head switch time")?;
    spec.write_settle_ms = fields.number_or_zero("Add. write settling delay")?;
    if !spec.seek.write_points_cylinders_ms.is_empty() && spec.write_settle_ms != 0.0 {
        fields.note(
            "Add. write settling delay",
            "counts for head switches only: writes have a seek curve of their own",
        );
    }
    fields.finish();
    Ok(spec)
}

/// Mechanics with this speed and seek curve and nothing else.
pub(crate) fn plain(rpm: f64, seek: SeekSpec) -> MechanicsSpec {
    MechanicsSpec {
        rpm,
        rpm_deviation_percent: 0.0,
        head_switch_ms: 0.0,
        write_settle_ms: 0.0,
        zero_latency_read: ZeroLatency::None,
        zero_latency_write: ZeroLatency::None,
        waits_skip_spares: false,
        constant_access_ms: None,
        seek,
        recalibration: None,
        retries: None,
        lost_turns: None,
        slow_periods: Vec::new(),
        stalls: Vec::new(),
        slow_patterns: Vec::new(),
    }
}

/// Keys of seek curves; those that the seek type does not use are noted.
const SEEK_KEYS: [&str; 7] = [
    "Full seek curve",
    "Single cylinder seek time",
    "Average seek time",
    "Full strobe seek time",
    "Constant seek time",
    "HPL seek equation values",
    "First ten seek times",
];

fn seek(fields: &mut Fields, cylinders: u32, top: &str, read: &mut Reader) -> Result<SeekSpec, SpecError> {
    let Some((kind, param)) = fields.word("Seek type")? else {
        return Err(fields.error("Seek type", "is missing"));
    };
    let seek = match kind {
        "extracted" => extracted(fields, top, read)?,
        "hplplus10" => {
            let points = first_ten(fields)?;
            SeekSpec { points_cylinders_ms: points, pieces: hpl(fields)?.0, ..SeekSpec::default() }
        }
        "hpl" => {
            let (pieces, single) = hpl(fields)?;
            let points_cylinders_ms = single.map(|time| (1, time)).into_iter().collect();
            SeekSpec { points_cylinders_ms, pieces, ..SeekSpec::default() }
        }
        "linear" => {
            let [single, average, full] = three_points(fields)?;
            SeekSpec { points_cylinders_ms: linear(single, average, full, cylinders), ..SeekSpec::default() }
        }
        "curve" => {
            let [single, average, full] = three_points(fields)?;
            SeekSpec { points_cylinders_ms: lee(single, average, full, cylinders), ..SeekSpec::default() }
        }
        "constant" => {
            let constant_ms = fields.number("Constant seek time")?;
            let piece = SeekPiece { up_to_cylinders: None, constant_ms, sqrt_ms: 0.0, linear_ms: 0.0 };
            SeekSpec { pieces: vec![piece], ..SeekSpec::default() }
        }
        other => {
            let message = format!("`{other}` is none of extracted, hplplus10, hpl, linear, curve, constant");
            return Err(param.place.error("Seek type", message));
        }
    };
    for key in SEEK_KEYS {
        fields.skip(key, &format!("is not used by a seek curve of the type `{kind}`"));
    }
    Ok(seek)
}

fn extracted(fields: &mut Fields, top: &str, read: &mut Reader) -> Result<SeekSpec, SpecError> {
    let Some((name, param)) = fields.word("Full seek curve")? else {
        return Err(fields.error("Full seek curve", "is missing"));
    };
    let path = param.place.beside(name, top);
    let text = read(&path).map_err(|error| param.place.error(&param.key, format!("{path}: {error}")))?;
    let (mut seek, columns) = seek_file(&text, &path)?;
    for (distance, time) in drop_failed(&mut seek) {
        let why = format!(
            "{time} ms is more than a quarter off the times next to it: a failed measurement, left out"
        );
        fields.notes.add(&path, 1, &format!("{distance} cylinders"), why);
    }
    if columns > 2 {
        fields.notes.add(&path, 1, "third column", "standard deviations of seeks are not modelled");
    }
    Ok(seek)
}

/// Parses a measured seek curve: lines of distance, ms, and perhaps its standard deviation and the ms of a write.
///
/// Returns the curve and the number of columns.
fn seek_file(text: &str, path: &str) -> Result<(SeekSpec, usize), SpecError> {
    let mut seek = SeekSpec::default();
    let mut columns = 0;
    for (index, line) in text.lines().enumerate() {
        let error = |message: String| Place { file: path.into(), line: index + 1 }.error("", message);
        let line = line.trim();
        if line.is_empty() || line.starts_with('#') || line.starts_with("Seek distances measured") {
            continue;
        }
        let numbers: Option<Vec<f64>> =
            line.split(',').map(|part| part.trim().parse().ok().filter(|n: &f64| n.is_finite())).collect();
        let Some((distance, times)) = numbers.as_deref().and_then(|n| n.split_first()) else {
            return Err(error(
                "needs a distance in cylinders and a time in ms, with a comma between".to_string(),
            ));
        };
        let distance = crate::fields::whole(*distance)
            .ok_or_else(|| error(format!("{distance} is no distance in whole cylinders")))?;
        if distance == 0 {
            continue;
        }
        if seek.points_cylinders_ms.last().is_some_and(|(before, _)| *before >= distance) {
            return Err(error(format!("{distance}: distances must rise")));
        }
        columns = columns.max(1 + times.len());
        match times {
            [time] | [time, _] => seek.points_cylinders_ms.push((distance, *time)),
            [time, _, write] => {
                seek.points_cylinders_ms.push((distance, *time));
                seek.write_points_cylinders_ms.push((distance, *write));
            }
            _ => return Err(error("needs two, three or four numbers".to_string())),
        }
    }
    let writes = seek.write_points_cylinders_ms.len();
    if seek.points_cylinders_ms.is_empty() || writes != 0 && writes != seek.points_cylinders_ms.len() {
        let message = "needs at least one line, and on all lines the time of a write or on none";
        return Err(Place { file: path.into(), line: 1 }.error("", message));
    }
    Ok((seek, columns))
}

/// Removes and returns failed measurements: times more than a quarter below, or above, both of their neighbours. An arm that
/// needs 7.4 ms over 3,300 cylinders and 7.6 ms over 3,500 does not need 1.0 ms over 3,400.
fn drop_failed(seek: &mut SeekSpec) -> Vec<(u32, f64)> {
    let failed = |three: &[(u32, f64)]| match *three {
        [(_, before), (distance, time), (_, after)]
            if time < 0.75 * before.min(after) || time > 1.25 * before.max(after) =>
        {
            Some((distance, time))
        }
        _ => None,
    };
    let failed: Vec<(u32, f64)> = seek.points_cylinders_ms.windows(3).filter_map(failed).collect();
    let good = |(distance, _): &(u32, f64)| failed.iter().all(|(other, _)| other != distance);
    seek.points_cylinders_ms.retain(good);
    seek.write_points_cylinders_ms.retain(good);
    failed
}

fn first_ten(fields: &mut Fields) -> Result<Vec<(u32, f64)>, SpecError> {
    let key = "First ten seek times";
    let times = fields.numbers(key)?.ok_or_else(|| fields.error(key, "is missing"))?;
    if times.len() != 10 {
        return Err(fields.error(key, format!("{} times where ten are needed", times.len())));
    }
    Ok((1..).zip(times).collect())
}

/// The curve of Ruemmler and Wilkes ("An introduction to disk drive modeling", 1994): a square root below a distance, a line from
/// it on; and the time for one cylinder, if given separately.
fn hpl(fields: &mut Fields) -> Result<(Vec<SeekPiece>, Option<f64>), SpecError> {
    let key = "HPL seek equation values";
    let values = fields.numbers(key)?.ok_or_else(|| fields.error(key, "is missing"))?;
    let [division, constant, sqrt, line, slope, single] = values[..] else {
        return Err(fields.error(key, format!("{} values where six are needed", values.len())));
    };
    let division = crate::fields::whole(division)
        .ok_or_else(|| fields.error(key, format!("{division} is no distance in whole cylinders")))?;
    let long = SeekPiece { up_to_cylinders: None, constant_ms: line, sqrt_ms: 0.0, linear_ms: slope };
    let short = SeekPiece {
        up_to_cylinders: Some(division.saturating_sub(1)),
        constant_ms: constant,
        sqrt_ms: sqrt,
        linear_ms: 0.0,
    };
    let pieces = if division > 1 { vec![short, long] } else { vec![long] };
    Ok((pieces, (single >= 0.0).then_some(single)))
}

fn three_points(fields: &mut Fields) -> Result<[f64; 3], SpecError> {
    Ok([
        fields.number("Single cylinder seek time")?,
        fields.number("Average seek time")?,
        fields.number("Full strobe seek time")?,
    ])
}

/// Straight lines between one cylinder, a third of the stroke (the mean distance of random seeks) and the full stroke.
fn linear(single: f64, average: f64, full: f64, cylinders: u32) -> Vec<(u32, f64)> {
    let mut points = vec![(1, single), (cylinders / 3, average), (cylinders.saturating_sub(1), full)];
    points.dedup_by(|later, earlier| later.0 <= earlier.0);
    points
}

/// The three-point curve of Lee and Katz ("An analytic performance model of disk arrays", 1993), with enough points that the
/// lines between them stay within 0.1 %.
fn lee(single: f64, average: f64, full: f64, cylinders: u32) -> Vec<(u32, f64)> {
    let stroke = f64::from(cylinders);
    let root = (-10.0 * single + 15.0 * average - 5.0 * full) / (3.0 * stroke.sqrt());
    let slope = (7.0 * single - 15.0 * average + 8.0 * full) / (3.0 * stroke);
    let mut points = Vec::new();
    let mut distance = 1;
    while distance < cylinders {
        let beyond = f64::from(distance - 1);
        points.push((distance, single + root * beyond.sqrt() + slope * beyond));
        distance = distance.saturating_add((distance / 16).max(1));
    }
    let beyond = f64::from(cylinders.saturating_sub(2));
    let last = (cylinders.saturating_sub(1).max(1), single + root * beyond.sqrt() + slope * beyond);
    if points.last().is_none_or(|(distance, _)| *distance < last.0) {
        points.push(last);
    }
    points
}
