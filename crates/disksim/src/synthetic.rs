//! `disksim_synthio`: the synthetic load of a set-up.

use crate::fields::{Fields, Notes, number, words};
use crate::parse::{Block, Value};
use crate::spec::{Setup, SetupLoad, SetupProcess};
use headstack_model::Nanos;
use headstack_model::SpecError;
use headstack_workload::dist::Distribution;
use headstack_workload::process::SyntheticSpec;

pub(crate) fn convert(block: &Block, setup: &Setup, notes: &Notes) -> Result<SetupLoad, SpecError> {
    let mut fields = Fields::new(block, notes);
    let requests = fields.count("Number of I/O requests to generate")?;
    let max_time_s = fields.number("Maximum time of trace generated")?;
    for key in [
        "System call/return with each request",
        "Think time from call to request",
        "Think time from request to return",
    ] {
        if fields.optional_number(key)?.is_some_and(|value| value != 0.0) {
            fields.note(key, "is not carried over: calls into the system take no time");
        }
    }
    let mut processes = Vec::new();
    for item in fields.list("Generators")?.unwrap_or_default() {
        let Value::Block(block) = item else {
            return Err(fields.error("Generators", "needs a list of blocks"));
        };
        processes.push(process(block, setup, notes)?);
    }
    if processes.is_empty() {
        return Err(fields.error("Generators", "needs a block at least"));
    }
    fields.finish();
    Ok(SetupLoad { requests, max_time_s, processes })
}

fn process(block: &Block, setup: &Setup, notes: &Notes) -> Result<SetupProcess, SpecError> {
    let mut fields = Fields::new(block, notes);
    let volumes =
        words(&mut fields, "devices")?.into_iter().map(|name| volume(name, setup)).collect::<Vec<_>>();
    let ms = |ms: f64| Nanos::from_ms(ms.max(0.0));
    let sectors = |sectors: f64| sectors;
    let spec = SyntheticSpec {
        processes: 1,
        capacity_sectors: Some(u64::from(fields.count("Storage capacity per device")?)),
        volumes,
        blocking_sectors: fields.count("Blocking factor")?,
        sequential_share: share(&mut fields, "Probability of sequential access")?,
        local_share: share(&mut fields, "Probability of local access")?,
        read_share: share(&mut fields, "Probability of read access")?,
        critical_share: share(&mut fields, "Probability of time-critical request")?,
        limited_share: share(&mut fields, "Probability of time-limited request")?,
        urgent_waits: false,
        time_limit: distribution(&mut fields, "Time-limited think times", ms)?,
        gap: distribution(&mut fields, "General inter-arrival times", ms)?,
        sequential_gap: distribution(&mut fields, "Sequential inter-arrival times", ms)?,
        local_gap: distribution(&mut fields, "Local inter-arrival times", ms)?,
        local_distance_sectors: distribution(&mut fields, "Local distances", sectors)?,
        size_sectors: distribution(&mut fields, "Sizes", sectors)?,
    };
    fields.finish();
    Ok(SetupProcess { file: block.place.file.to_string(), line: block.place.line, spec })
}

/// The volume of a name. If drives form arrays, DiskSim takes a drive's number for that of an array.
fn volume(name: String, setup: &Setup) -> String {
    let number = setup.drives.iter().position(|drive| drive.name == name);
    let taken = setup.arrays.iter().any(|array| array.drives.contains(&name));
    let array = number.filter(|_| taken).and_then(|number| setup.arrays.get(number));
    array.map_or(name, |array| array.name.clone())
}

fn share(fields: &mut Fields, key: &str) -> Result<f64, SpecError> {
    let share = fields.number(key)?;
    if (0.0..=1.0).contains(&share) {
        return Ok(share);
    }
    Err(fields.error(key, format!("{share} is outside 0 to 1")))
}

/// `[ name, number, number … ]`, the numbers converted by `value`.
fn distribution<V>(
    fields: &mut Fields,
    key: &str,
    value: impl Fn(f64) -> V,
) -> Result<Distribution<V>, SpecError> {
    let items = fields.list(key)?.unwrap_or_default();
    let values: Vec<f64> =
        items.iter().skip(1).filter_map(number).filter(|value| value.is_finite()).collect();
    let name = match items.first() {
        Some(Value::Word(name)) if values.len() + 1 == items.len() => name.as_str(),
        _ => return Err(fields.error(key, "needs a list `[ name, number, … ]`")),
    };
    match (name, &values[..]) {
        ("uniform", [low, high]) => Ok(Distribution::Uniform { low: value(*low), high: value(*high) }),
        // The manual calls the second a variance; DiskSim 4.0 uses it as the deviation.
        ("normal", [mean, dev]) => Ok(Distribution::Normal { mean: value(*mean), deviation: value(*dev) }),
        ("exponential", [base, mean]) => {
            Ok(Distribution::Exponential { base: value(*base), mean: value(*mean) })
        }
        ("poisson", [base, mean]) => Ok(Distribution::Poisson { base: value(*base), mean: value(*mean) }),
        ("twovalue", [usual, other, share]) => {
            Ok(Distribution::TwoValued { usual: value(*usual), other: value(*other), share: *share })
        }
        ("uniform" | "normal" | "exponential" | "poisson" | "twovalue", _) => {
            Err(fields.error(key, format!("{} numbers do not make `{name}`", values.len())))
        }
        _ => {
            Err(fields
                .error(key, format!("`{name}` is none of uniform, normal, exponential, poisson, twovalue")))
        }
    }
}
