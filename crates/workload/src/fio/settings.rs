//! The keys of one job, with fio's defaults.

use headstack_model::Nanos;

use super::engine::{Engine, PSYNC};
use super::own::Own;
use super::value::{Amount, Given, wrong};

/// Reads, writes and trims, as places in arrays.
pub(super) const READ: usize = 0;
pub(super) const WRITE: usize = 1;

/// Sizes of a split, zones of a distribution.
const SPLITS_MAX: usize = 64;
const ZONES_MAX: usize = 256;

/// The kinds of requests of `rw`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Direction {
    pub(super) random: bool,
    pub(super) reads: bool,
    pub(super) writes: bool,
    pub(super) trims: bool,
}

const fn direction(random: bool, reads: bool, writes: bool, trims: bool) -> Direction {
    Direction { random, reads, writes, trims }
}

/// The words of `rw`.
pub(super) const DIRECTIONS: [(&str, Direction); 11] = [
    ("read", direction(false, true, false, false)),
    ("write", direction(false, false, true, false)),
    ("rw", direction(false, true, true, false)),
    ("readwrite", direction(false, true, true, false)),
    ("randread", direction(true, true, false, false)),
    ("randwrite", direction(true, false, true, false)),
    ("randrw", direction(true, true, true, false)),
    ("trim", direction(false, false, false, true)),
    ("randtrim", direction(true, false, false, true)),
    ("trimwrite", direction(false, false, true, true)),
    ("randtrimwrite", direction(true, false, true, true)),
];

/// How random places are spread over a file.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Spread {
    Uniform,
    Zipf { theta: f64, center: Option<f64> },
    Pareto { share: f64, center: Option<f64> },
    Normal { deviation: f64, center: Option<f64> },
    Zoned([Vec<Zone>; 3]),
}

/// A part of a file with its share of the accesses.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Zone {
    pub(super) access_percent: u64,
    pub(super) size: Amount,
}

/// How the next file of several is chosen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Service {
    RoundRobin,
    Sequential,
    Random,
}

/// How the gaps between requests of a rate are made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RateProcess {
    Linear,
    Poisson,
}

/// A size of a split and its share.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Split {
    pub(super) bytes: u64,
    pub(super) percent: u64,
}

/// All that is honoured, of one job.
#[derive(Clone, Debug)]
pub(super) struct Settings {
    pub(super) kb_base: u64,
    pub(super) name: Option<String>,
    pub(super) description: Option<String>,
    pub(super) engine: Engine,
    /// The export of an NBD server, for the engine that needs one.
    pub(super) uri: Option<String>,
    pub(super) filename: Option<String>,
    pub(super) directory: Option<String>,
    pub(super) filename_format: Option<String>,
    pub(super) nrfiles: u64,
    pub(super) service: Service,
    pub(super) service_burst: u64,
    pub(super) direction: Direction,
    /// The number after `rw=…:`.
    pub(super) modifier: u64,
    pub(super) backwards: bool,
    pub(super) same_place: bool,
    pub(super) bs: [u64; 3],
    pub(super) bs_range: [Option<(u64, u64)>; 3],
    pub(super) bs_split: [Vec<Split>; 3],
    pub(super) bs_unaligned: bool,
    pub(super) bs_by_randomness: bool,
    pub(super) align: [Option<u64>; 3],
    pub(super) size: Amount,
    pub(super) io_size: Amount,
    pub(super) filesize: Option<(u64, u64)>,
    pub(super) offset: Amount,
    pub(super) offset_increment: Amount,
    pub(super) offset_align: u64,
    pub(super) number_ios: u64,
    pub(super) loops: u64,
    pub(super) numjobs: u64,
    pub(super) iodepth: u64,
    pub(super) iodepth_low: u64,
    pub(super) complete_min: u64,
    pub(super) offload: bool,
    pub(super) rwmix_read: u64,
    pub(super) percentage_random: [u64; 3],
    pub(super) spread: Spread,
    pub(super) norandommap: bool,
    pub(super) randrepeat: bool,
    pub(super) randseed: Option<u64>,
    pub(super) runtime: Option<Nanos>,
    pub(super) time_based: bool,
    pub(super) ramp_time: Nanos,
    pub(super) startdelay: (Nanos, Nanos),
    pub(super) thinktime: Nanos,
    pub(super) thinktime_spin: Nanos,
    pub(super) thinktime_blocks: Option<u64>,
    pub(super) thinktime_at_issue: bool,
    pub(super) thinktime_iotime: Nanos,
    pub(super) rate: [u64; 3],
    pub(super) rate_iops: [u64; 3],
    pub(super) rate_process: RateProcess,
    pub(super) rate_ignores_thinktime: bool,
    pub(super) fsync: u64,
    pub(super) fdatasync: u64,
    pub(super) end_fsync: bool,
    pub(super) sync: bool,
    pub(super) direct: bool,
    pub(super) read_iolog: Option<String>,
    pub(super) replay_no_stall: bool,
    pub(super) replay_time_scale: u64,
    pub(super) urgent_percent: [u64; 3],
    pub(super) urgent_class: bool,
    pub(super) urgent_job: bool,
    pub(super) stonewall: bool,
    pub(super) new_group: bool,
    pub(super) wait_for: Option<String>,
    pub(super) exitall: bool,
    pub(super) group_reporting: bool,
    pub(super) own: Own,
}

impl Default for Settings {
    fn default() -> Settings {
        Settings {
            kb_base: 1024,
            name: None,
            description: None,
            engine: PSYNC,
            uri: None,
            filename: None,
            directory: None,
            filename_format: None,
            nrfiles: 1,
            service: Service::RoundRobin,
            service_burst: 1,
            direction: direction(false, true, false, false),
            modifier: 0,
            backwards: false,
            same_place: false,
            bs: [4096; 3],
            bs_range: [None; 3],
            bs_split: [const { Vec::new() }; 3],
            bs_unaligned: false,
            bs_by_randomness: false,
            align: [None; 3],
            size: Amount::ZERO,
            io_size: Amount::ZERO,
            filesize: None,
            offset: Amount::ZERO,
            offset_increment: Amount::ZERO,
            offset_align: 0,
            number_ios: 0,
            loops: 1,
            numjobs: 1,
            iodepth: 1,
            iodepth_low: 0,
            complete_min: 1,
            offload: false,
            rwmix_read: 50,
            percentage_random: [100; 3],
            spread: Spread::Uniform,
            norandommap: false,
            randrepeat: true,
            randseed: None,
            runtime: None,
            time_based: false,
            ramp_time: Nanos::ZERO,
            startdelay: (Nanos::ZERO, Nanos::ZERO),
            thinktime: Nanos::ZERO,
            thinktime_spin: Nanos::ZERO,
            thinktime_blocks: None,
            thinktime_at_issue: false,
            thinktime_iotime: Nanos::ZERO,
            rate: [0; 3],
            rate_iops: [0; 3],
            rate_process: RateProcess::Linear,
            rate_ignores_thinktime: false,
            fsync: 0,
            fdatasync: 0,
            end_fsync: false,
            sync: false,
            direct: false,
            read_iolog: None,
            replay_no_stall: false,
            replay_time_scale: 100,
            urgent_percent: [0; 3],
            urgent_class: true,
            urgent_job: false,
            stonewall: false,
            new_group: false,
            wait_for: None,
            exitall: false,
            group_reporting: false,
            own: Own::default(),
        }
    }
}

type Set = Result<(), String>;

impl Settings {
    /// Whether a synchronous engine keeps one request outstanding although `iodepth` is larger. Requests that fio passes to
    /// threads of their own (`io_submit_mode=offload`) do not wait for each other.
    pub(super) fn caps_depth(&self) -> bool {
        self.engine.synchronous && !self.offload && self.iodepth > 1
    }

    /// Requests outstanding at most.
    pub(super) fn depth(&self) -> u64 {
        if self.caps_depth() { 1 } else { self.iodepth }
    }

    /// Whether neither a file nor a size is given, so that only a volume can be meant.
    pub(super) fn names_nothing(&self) -> bool {
        let has_size = matches!(self.size, Amount::Bytes(bytes) if bytes > 0) || self.filesize.is_some();
        let has_name = self.filename.is_some() || self.directory.is_some() || self.filename_format.is_some();
        !has_size && !has_name && self.nrfiles == 1
    }

    /// Whether requests bypass the page cache of the rig's host.
    pub(super) fn is_direct(&self) -> bool {
        self.direct || self.engine.past_cache
    }

    /// `rw=randread:8`, `rw=write:4k`.
    pub(super) fn set_direction(&mut self, given: &Given<'_>) -> Set {
        let (word, modifier) = given.head()?;
        self.direction = word.word(&DIRECTIONS)?;
        (self.modifier, self.backwards) = (0, false);
        let Some(modifier) = modifier else { return Ok(()) };
        if self.direction.random {
            self.modifier = modifier.count(1, u64::from(u32::MAX))?;
            return Ok(());
        }
        let (distance, backwards) = modifier.signed()?;
        (self.modifier, self.backwards) = (distance.bytes()?, backwards);
        Ok(())
    }

    /// `bssplit=4k/10:64k/50:32k/40`, one list a direction.
    pub(super) fn set_split(&mut self, given: &Given<'_>) -> Set {
        given.by_direction(&mut self.bs_split, |given| {
            let pairs = pairs(given, SPLITS_MAX, Given::request_bytes, Given::percent)?;
            let percents = fill(pairs.iter().map(|(_, percent)| *percent), given)?;
            let splits = pairs.iter().zip(percents);
            let mut splits: Vec<Split> =
                splits.map(|((bytes, _), percent)| Split { bytes: *bytes, percent }).collect();
            splits.sort_by_key(|split| split.percent);
            Ok(splits)
        })
    }

    /// `random_distribution=zipf:1.2`, `zoned:60/10:30/20:8/30:2/40`, …
    pub(super) fn set_spread(&mut self, given: &Given<'_>) -> Set {
        let (word, rest) = given.head()?;
        let kinds =
            [("random", 0), ("zipf", 1), ("pareto", 2), ("normal", 3), ("zoned", 4), ("zoned_abs", 5)];
        let kind = word.word(&kinds)?;
        let shape = |default: f64, check: fn(f64) -> bool, allowed: &str| {
            let (value, center) = rest.map_or(Ok((None, None)), |rest| rest.shape())?;
            let value = value.unwrap_or(default);
            if !check(value) {
                return Err(wrong(&value.to_string(), allowed));
            }
            Ok((value, center))
        };
        self.spread = match kind {
            0 => Spread::Uniform,
            1 => {
                let (theta, center) =
                    shape(1.1, |theta| theta > 0.0 && theta != 1.0, "a theta above 0 other than 1")?;
                Spread::Zipf { theta, center }
            }
            2 => {
                let allowed = "a power between 0 and 1";
                let (share, center) = shape(0.2, |share| share > 0.0 && share < 1.0, allowed)?;
                Spread::Pareto { share, center }
            }
            3 => {
                let allowed = "a deviation from 0 up to 100";
                let (deviation, center) = shape(0.0, |dev| (0.0..100.0).contains(&dev), allowed)?;
                Spread::Normal { deviation, center }
            }
            _ => {
                let rest = rest.ok_or("needs zones such as 60/10:40/90")?;
                let mut zones = [const { Vec::new() }; 3];
                rest.by_direction(&mut zones, |given| read_zones(given, kind == 5))?;
                Spread::Zoned(zones)
            }
        };
        Ok(())
    }

    /// `file_service_type=random:8`.
    pub(super) fn set_service(&mut self, given: &Given<'_>) -> Set {
        let (word, burst) = given.head()?;
        self.service = word.word(&[
            ("roundrobin", Service::RoundRobin),
            ("sequential", Service::Sequential),
            ("random", Service::Random),
        ])?;
        self.service_burst = burst.map_or(Ok(1), |burst| burst.count(1, u64::from(u32::MAX)))?;
        Ok(())
    }
}

/// Zones with shares of the accesses that add up to 100 %.
fn read_zones(given: &Given<'_>, absolute: bool) -> Result<Vec<Zone>, String> {
    if absolute {
        let pairs = pairs(given, ZONES_MAX, Given::percent, Given::bytes)?;
        let sizes: Option<Vec<u64>> = pairs.iter().map(|(_, size)| *size).collect();
        let sizes = sizes.ok_or("each zone needs its size, as in 60/20g:40/80g")?;
        whole(pairs.iter().map(|(access, _)| *access), given)?;
        let zones = pairs.iter().zip(sizes);
        return Ok(zones
            .map(|((access, _), size)| Zone { access_percent: *access, size: Amount::Bytes(size) })
            .collect());
    }
    let pairs = pairs(given, ZONES_MAX, Given::percent, Given::percent)?;
    whole(pairs.iter().map(|(access, _)| *access), given)?;
    let sizes = fill(pairs.iter().map(|(_, size)| *size), given)?;
    let zones = pairs.iter().zip(sizes);
    Ok(zones
        .map(|((access, _), size)| Zone { access_percent: *access, size: Amount::Percent(size) })
        .collect())
}

/// The pairs of a list `first/second:first/second`; the second of a pair may be left out.
#[allow(clippy::type_complexity, reason = "the pairs are what the name says")]
fn pairs<'a, A, B>(
    given: &Given<'a>,
    most: usize,
    first: fn(&Given<'a>) -> Result<A, String>,
    second: fn(&Given<'a>) -> Result<B, String>,
) -> Result<Vec<(A, Option<B>)>, String> {
    let parts = given.parts(':')?;
    if parts.len() > most {
        return Err(format!("{} parts, where at most {most} are allowed", parts.len()));
    }
    let read = |part: &Given<'a>| {
        let pair = part.parts('/')?;
        let tail = pair.get(1).filter(|tail| tail.text().is_ok());
        Ok((first(&pair[0])?, tail.map(second).transpose()?))
    };
    parts.iter().map(read).collect()
}

/// Percentages with those that were left out filled in evenly.
fn fill(percents: impl Iterator<Item = Option<u64>> + Clone, given: &Given<'_>) -> Result<Vec<u64>, String> {
    let sum: u64 = percents.clone().flatten().sum();
    let missing = percents.clone().filter(Option::is_none).count() as u64;
    let Some(left) = 100u64.checked_sub(sum) else {
        return Err(wrong(given.text()?, "at most 100 % in all"));
    };
    if missing == 0 && left > 0 {
        return Err(wrong(given.text()?, "100 % in all"));
    }
    Ok(percents.map(|percent| percent.unwrap_or(left / missing.max(1))).collect())
}

/// That percentages add up to 100.
fn whole(percents: impl Iterator<Item = u64>, given: &Given<'_>) -> Set {
    let sum: u64 = percents.sum();
    if sum == 100 { Ok(()) } else { Err(wrong(given.text()?, "100 % of the accesses in all")) }
}
