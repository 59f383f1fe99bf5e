//! Synthetic processes: each request continues the last one, lies near it, or anywhere; and is waited for or not.
//!
//! Modelled: shares of sequential, local, read, time-critical (waited for at once) and time-limited (waited for after a
//! while) requests; distributions of sizes, distances and gaps; several volumes. Not modelled: the processor time of
//! calls into the system.
//!
//! *Source:* the meaning of the parameters of DiskSim's synthetic generator, whose files are imported as these.

use headstack_model::spec::{Fault, KeyRules};
use headstack_model::{Instant, Lbn, Nanos, Op, Request};
use rand::RngExt;
use rand_pcg::Pcg64Mcg;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::sync::LazyLock;
use thiserror::Error;

use super::{MOST_PROCESSES, Process, Step, Wait};
use crate::ShapeError;
use crate::dist::{Distribution, DistributionError, Sampler};
use crate::shape::{generator, seed_of};
use crate::volume::{VolumeInfo, find_volume};

/// How often a size and a place are drawn again until they fit; then they are cut to fit.
const TRIES: u32 = 100;

/// Synthetic processes of one kind, as DiskSim's synthetic generators. Sizes are in sectors. Each request continues the last one, begins
/// near it, or lies anywhere. The process then waits for it at once (*critical*), waits for it once its time limit has passed (*limited*),
/// or continues without waiting. A process's own time stands still while the process waits.
///
/// A size or a place that does not fit is drawn again. DiskSim's files have the *variance* of a normal distribution; here it is the standard
/// deviation.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SyntheticSpec {
    /// Number of such processes.
    #[serde(default = "one")]
    #[schemars(range(min = 1, max = MOST_PROCESSES))]
    pub processes: u32,
    /// Names of the volumes used; each request that is neither sequential nor local goes to any of them. Empty: all.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub volumes: Vec<String>,
    /// Sectors used of each volume, from its start. All when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub capacity_sectors: Option<u64>,
    /// Requests begin at multiples of this, and are multiples of it long.
    #[serde(default = "one")]
    #[schemars(range(min = 1))]
    pub blocking_sectors: u32,
    /// Share of requests that continue the last one, as long as it and in its direction.
    #[serde(default)]
    #[schemars(range(min = 0.0, max = 1.0))]
    pub sequential_share: f64,
    /// Share of requests that begin near the last one's begin.
    #[serde(default)]
    #[schemars(range(min = 0.0, max = 1.0))]
    pub local_share: f64,
    /// Share of reads among the requests that are not sequential; the others are writes.
    #[serde(default = "all")]
    #[schemars(range(min = 0.0, max = 1.0))]
    pub read_share: f64,
    /// Share of requests that the process waits for at once.
    #[serde(default = "all")]
    #[schemars(range(min = 0.0, max = 1.0))]
    pub critical_share: f64,
    /// Share of requests that the process waits for once their time limit has passed.
    #[serde(default)]
    #[schemars(range(min = 0.0, max = 1.0))]
    pub limited_share: f64,
    /// Whether requests that the process waits for, at once or later, are urgent.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub urgent_waits: bool,
    /// Size of requests, a distribution of numbers. It is rounded down to whole sectors, drawn again if that is zero, and then rounded up to
    /// the blocking.
    pub size_sectors: Distribution<f64>,
    /// Distance from the last request's begin to a local one's, a distribution of numbers.
    #[serde(default = "no_distance")]
    pub local_distance_sectors: Distribution<f64>,
    /// Time to a request that is neither sequential nor local, a distribution of times.
    #[serde(default)]
    pub gap: Distribution<Nanos>,
    /// Time to a sequential request.
    #[serde(default)]
    pub sequential_gap: Distribution<Nanos>,
    /// Time to a local request.
    #[serde(default)]
    pub local_gap: Distribution<Nanos>,
    /// Time limit of requests that have one.
    #[serde(default)]
    pub time_limit: Distribution<Nanos>,
}

fn one() -> u32 {
    1
}

fn all() -> f64 {
    1.0
}

fn no_distance() -> Distribution<f64> {
    Distribution::Constant(0.0)
}

/// Synthetic processes that cannot be made.
#[derive(Clone, Debug, PartialEq, Error)]
#[allow(missing_docs, reason = "the messages say it")]
pub enum SyntheticError {
    #[error("{}", .0.message)]
    Range(Fault),
    /// Two exclusive shares sum to more than 1.
    #[error("{found} and {other} are more than 1 together")]
    Share { key: &'static str, found: f64, other: &'static str },
    #[error("{error}")]
    Distribution { key: &'static str, error: DistributionError },
    #[error("{found} is hardly ever 1 or more")]
    Size { found: String },
    #[error("{message}")]
    Volume { key: &'static str, message: String },
    #[error(transparent)]
    Shape(#[from] ShapeError),
}

impl SyntheticError {
    /// The key at fault.
    pub fn key(&self) -> &str {
        match self {
            SyntheticError::Range(fault) => &fault.key,
            SyntheticError::Share { key, .. }
            | SyntheticError::Distribution { key, .. }
            | SyntheticError::Volume { key, .. } => key,
            SyntheticError::Size { .. } => "size_sectors",
            SyntheticError::Shape(_) => "processes",
        }
    }
}

static RULES: LazyLock<KeyRules> = LazyLock::new(KeyRules::from_type::<SyntheticSpec>);

impl SyntheticSpec {
    /// Checks its numbers, independently of the volumes.
    ///
    /// *Errors:* the first invalid one.
    pub fn check(&self) -> Result<(), SyntheticError> {
        RULES.check(self, "").map_err(SyntheticError::Range)?;
        for (key, found, other, share) in [
            ("local_share", self.local_share, "sequential_share", self.sequential_share),
            ("limited_share", self.limited_share, "critical_share", self.critical_share),
        ] {
            if found + share > 1.0 + 1e-9 {
                return Err(SyntheticError::Share { key, found, other });
            }
        }
        let drawn = |key| move |error| SyntheticError::Distribution { key, error };
        let times = [
            ("gap", &self.gap),
            ("sequential_gap", &self.sequential_gap),
            ("local_gap", &self.local_gap),
            ("time_limit", &self.time_limit),
        ];
        times.into_iter().try_for_each(|(key, time)| time.check().map_err(drawn(key)))?;
        self.local_distance_sectors.check().map_err(drawn("local_distance_sectors"))?;
        let sizes = self.size_sectors.sampler().map_err(drawn("size_sectors"))?;
        let mut random = generator(0);
        if (0..TRIES).all(|_| sizes.draw(&mut random) < 1.0) {
            return Err(SyntheticError::Size { found: self.size_sectors.to_string() });
        }
        Ok(())
    }

    /// The processes of this kind, over the volumes of a rig.
    ///
    /// *Errors:* as [`SyntheticSpec::check`]; or a volume does not exist, or is smaller than the used part.
    pub fn build(&self, volumes: &[VolumeInfo], seed: u64) -> Result<Vec<Synthetic>, SyntheticError> {
        self.check()?;
        let areas = self.areas(volumes)?;
        let ready = "the spec was checked";
        let process = |index| Synthetic {
            random: generator(seed_of(seed, index)),
            spec: Shares {
                sequential: self.sequential_share,
                local: self.local_share,
                read: self.read_share,
                critical: self.critical_share,
                limited: self.limited_share,
            },
            urgent_waits: self.urgent_waits,
            blocking: self.blocking_sectors,
            size: self.size_sectors.sampler().expect(ready),
            distance: self.local_distance_sectors.sampler().expect(ready),
            gaps: [&self.gap, &self.sequential_gap, &self.local_gap].map(|gap| gap.sampler().expect(ready)),
            limit: self.time_limit.sampler().expect(ready),
            areas: areas.clone(),
            last: None,
        };
        Ok((0..u64::from(self.processes)).map(process).collect())
    }

    fn areas(&self, volumes: &[VolumeInfo]) -> Result<Vec<Area>, SyntheticError> {
        let fault = |key| move |message| SyntheticError::Volume { key, message };
        let numbers: Vec<usize> = if self.volumes.is_empty() {
            (0..volumes.len()).collect()
        } else {
            let find = |name: &String| find_volume(volumes, name).map_err(fault("volumes"));
            self.volumes.iter().map(find).collect::<Result<_, _>>()?
        };
        if numbers.is_empty() {
            return Err(fault("volumes")("the rig has no volume".to_string()));
        }
        let area = |number: usize| {
            let info = &volumes[number];
            let sectors = self.capacity_sectors.unwrap_or(info.sectors);
            let blocks = sectors / u64::from(self.blocking_sectors);
            if sectors > info.sectors {
                let message =
                    format!("{sectors} are more than the {} sectors of `{}`", info.sectors, info.name);
                return Err(fault("capacity_sectors")(message));
            }
            if blocks == 0 {
                let message = format!(
                    "{} do not fit in the {sectors} sectors of `{}`",
                    self.blocking_sectors, info.name
                );
                return Err(fault("blocking_sectors")(message));
            }
            Ok(Area { device: number as u32, blocks })
        };
        numbers.into_iter().map(area).collect()
    }
}

#[derive(Clone, Copy, Debug)]
struct Shares {
    sequential: f64,
    local: f64,
    read: f64,
    critical: f64,
    limited: f64,
}

#[derive(Clone, Copy, Debug)]
struct Area {
    device: u32,
    blocks: u64,
}

#[derive(Clone, Copy, Debug)]
struct Run {
    area: Area,
    first: u64,
    blocks: u64,
    op: Op,
}

/// A synthetic process.
#[derive(Clone, Debug)]
pub struct Synthetic {
    random: Pcg64Mcg,
    spec: Shares,
    urgent_waits: bool,
    blocking: u32,
    size: Sampler<f64>,
    distance: Sampler<f64>,
    /// Gaps before requests to any place, sequential and local ones.
    gaps: [Sampler<Nanos>; 3],
    limit: Sampler<Nanos>,
    areas: Vec<Area>,
    last: Option<Run>,
}

impl Process for Synthetic {
    fn next(&mut self, _now: Instant) -> Option<Step> {
        let kind: f64 = self.random.random();
        let near = self.spec.sequential + self.spec.local;
        let (gap, run) = match self.last {
            Some(last) if kind < self.spec.sequential && last.first + 2 * last.blocks <= last.area.blocks => {
                (1, Run { first: last.first + last.blocks, ..last })
            }
            Some(last) if kind >= self.spec.sequential && kind < near => (2, self.local(last)),
            _ => (0, self.anywhere()),
        };
        self.last = Some(run);
        let gap = self.gaps[gap].draw(&mut self.random);
        let class: f64 = self.random.random();
        let wait = match class - self.spec.critical {
            below if below < 0.0 => Wait::AtOnce,
            below if below < self.spec.limited => Wait::After(self.limit.draw(&mut self.random)),
            _ => Wait::Not,
        };
        let blocking = u64::from(self.blocking);
        let request = Request {
            op: run.op,
            lbn: Lbn(run.first * blocking),
            sectors: (run.blocks * blocking) as u32,
            fua: false,
        };
        let urgent = self.urgent_waits && wait != Wait::Not;
        Some(Step { gap, device: run.area.device, request, wait, urgent })
    }
}

impl Synthetic {
    fn op(&mut self) -> Op {
        if self.random.random::<f64>() < self.spec.read { Op::Read } else { Op::Write }
    }

    fn most(&self, area: Area) -> u64 {
        area.blocks.min(u64::from(u32::MAX / self.blocking))
    }

    fn blocks(&mut self) -> u64 {
        let sectors = self.size.draw(&mut self.random);
        (sectors.floor() / f64::from(self.blocking)).ceil() as u64
    }

    fn anywhere(&mut self) -> Run {
        let area = self.areas[self.random.random_range(0..self.areas.len())];
        let most = self.most(area);
        let fitting = (0..TRIES).map(|_| self.blocks()).find(|blocks| (1..=most).contains(blocks));
        let blocks = fitting.unwrap_or(most);
        let first = self.random.random_range(0..=area.blocks - blocks);
        Run { area, first, blocks, op: self.op() }
    }

    fn local(&mut self, last: Run) -> Run {
        let Run { area, .. } = last;
        let most = self.most(area);
        for _ in 0..TRIES {
            let distance = (self.distance.draw(&mut self.random) / f64::from(self.blocking)) as i64;
            let (first, blocks) = (last.first.checked_add_signed(distance), self.blocks());
            if let Some(first) = first.filter(|first| first.saturating_add(blocks) <= area.blocks)
                && (1..=most).contains(&blocks)
            {
                return Run { area, first, blocks, op: self.op() };
            }
        }
        // The distances lead off the disk: use the last place again.
        Run { op: self.op(), ..last }
    }
}
