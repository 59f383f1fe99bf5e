//! Copies chosen by a forecast, against the study's method, and against an oracle that knows each period in advance and copies in no time.

use super::loads::{LoadCase, RearrangedLoad, ServerShape};
use super::seeks::{DISK, SavedSeeks, measure, saved};
use super::{BLOCKS, Key};
use crate::judge::Measured;
use crate::study::{Findings, Length, Setting, StudyError};
use headstack::report::{Section, Table};
use headstack_model::{DriveSpec, Instant, Lbn, Nanos, Request};
use headstack_sim::{RearrangeLayer, Rig};
use headstack_streams::rearrange::{
    CarriedShare, ExactCounts, HotBlock, HotPlacement, ReferenceAnalyzer, RegionSlot, ReservedRegion,
    ReservedRun,
};
use headstack_workload::{Issue, Load, Poll};
use std::collections::BTreeMap;

/// Periods per day. *Source:* assumption, chosen before the first run.
const PERIODS_PER_DAY: f64 = 8.0;

/// Sectors of a block, a track and a cylinder of the study's disk.
const BLOCK_SECTORS: u64 = 16;
const TRACK_SECTORS: u64 = 113;
const CYLINDER_SECTORS: u64 = 904;

/// The variants, as keys of the rig; the first copies nothing. The last two have short periods.
const VARIANTS: [(&str, &[Key], f64); 5] = [
    ("without", &[("rearrange.least_references", "1000000000")], 1.0),
    ("last day", &[], 1.0),
    ("forecast by day", &[("rearrange.selection", "forecast")], 1.0),
    ("last eighth of a day", &[], PERIODS_PER_DAY),
    ("forecast by eighth", &[("rearrange.selection", "forecast")], PERIODS_PER_DAY),
];

/// The oracle: a disk whose region holds the hottest blocks of each period from the period's start.
struct PerfectRegion<'a> {
    load: Box<dyn Load + 'a>,
    region: ReservedRegion,
    slots: Vec<RegionSlot>,
    period: Nanos,
    /// The hot list of each period.
    lists: Vec<Vec<HotBlock>>,
    /// The slot of each hot block of the period.
    slot_of: BTreeMap<u64, u32>,
    /// Periods that have begun.
    begun: usize,
    hits: u64,
    requests: u64,
}

impl PerfectRegion<'_> {
    fn placed(&mut self, now: Instant, request: Request) -> Request {
        let number = (now.since(Instant::ZERO).0 / self.period.0) as usize;
        if number >= self.begun {
            self.begun = number + 1;
            let list = &self.lists[number];
            let slots = HotPlacement::OrganPipe.assign(list, &self.slots, |_| None);
            self.slot_of = list.iter().map(|hot| hot.block).zip(slots).collect();
        }
        self.requests += 1;
        let lbn = match self.slot_of.get(&(request.lbn.0 / BLOCK_SECTORS)) {
            Some(slot) => {
                self.hits += 1;
                self.slots[*slot as usize].lbn + request.lbn.0 % BLOCK_SECTORS
            }
            None => self.region.home(request.lbn).0,
        };
        Request { lbn, ..request }
    }
}

impl Load for PerfectRegion<'_> {
    fn poll(&mut self, now: Instant) -> Poll {
        match self.load.poll(now) {
            Poll::Issue(issue) => Poll::Issue(Issue { request: self.placed(now, issue.request), ..issue }),
            other => other,
        }
    }

    fn handle_completion(&mut self, now: Instant, id: u64) {
        self.load.handle_completion(now, id);
    }
}

/// The hot list of each period of an open load.
fn hot_lists(load: &mut dyn Load, period: Nanos) -> Vec<Vec<HotBlock>> {
    let (mut now, mut lists, mut counts) = (Instant::ZERO, Vec::new(), ExactCounts::default());
    loop {
        match load.poll(now) {
            Poll::Issue(issue) => {
                let number = (now.since(Instant::ZERO).0 / period.0) as usize;
                while lists.len() < number {
                    lists.push(counts.hot_list(BLOCKS as usize));
                    counts.age(CarriedShare::from_ratio(0.0));
                }
                counts.observe(issue.request.lbn.0 / BLOCK_SECTORS);
            }
            Poll::Later(time) => now = time,
            _ => break,
        }
    }
    lists.push(counts.hot_list(BLOCKS as usize));
    lists
}

/// Mean seek per request after the first day, and the share of requests served from the region.
fn oracle(case: &LoadCase, length: Length) -> Result<(f64, f64), StudyError> {
    let drive = DriveSpec::parse(DISK, "studies/rearrangement/disk.toml")?;
    let whole = Rig::from_drive(drive.clone());
    let mut reserved = Rig::from_drive(drive);
    reserved.set("rearrange.blocks", &BLOCKS.to_string())?;
    let activity =
        reserved.build(1)?.layer::<RearrangeLayer>(0).expect("the volume has a rearranger").activity();
    let volumes = reserved.volumes();
    let run = ReservedRun { first: activity.first, sectors: activity.reserved_sectors };
    let region = ReservedRegion::new(whole.volumes()[0].sectors, vec![run]).expect("the rig's region fits");
    let place = |lbn: Lbn| ((lbn.0 / CYLINDER_SECTORS) as u32, (lbn.0 / TRACK_SECTORS) as u32);
    let day = Nanos::from_ms(case.day_s() * 1e3);
    let period = Nanos::from_ms(case.day_s() * 1e3 / PERIODS_PER_DAY);
    let mut perfect = PerfectRegion {
        lists: hot_lists(case.requests(None, &volumes, length)?.as_mut(), period),
        load: case.requests(None, &volumes, length)?,
        slots: region.slots(BLOCK_SECTORS, place),
        region,
        period,
        slot_of: BTreeMap::new(),
        begun: 0,
        hits: 0,
        requests: 0,
    };
    let (mut seek, mut requests) = (Nanos::ZERO, 0);
    whole.build(1)?.run(&mut perfect, &mut |finished| {
        if finished.completion.submitted.since(Instant::ZERO) >= day {
            seek += finished.completion.parts.seek;
            requests += 1;
        }
    });
    Ok((seek.as_ms() / f64::from(requests.max(1)), perfect.hits as f64 / perfect.requests.max(1) as f64))
}

/// The servers whose ranks drift, and one whose blocks are all equally popular.
fn cases() -> [(&'static str, LoadCase); 4] {
    let [steady, slow, quick] =
        [RearrangedLoad::Steady, RearrangedLoad::Slow, RearrangedLoad::Quick].map(LoadCase::study);
    let shape = ServerShape { exponent: 0.0, ..ServerShape::STUDY };
    let even = LoadCase { load: RearrangedLoad::Slow, shape };
    [("steady", steady), ("slow", slow), ("quick", quick), ("without skew", even)]
}

/// A load under each variant, and under the oracle.
struct ForecastRuns {
    variants: Vec<SavedSeeks>,
    oracle: (f64, f64),
}

fn runs(case: &LoadCase, length: Length) -> Result<ForecastRuns, StudyError> {
    let variant = |(_, keys, periods): &(&str, &[Key], f64)| {
        let period = (case.day_s() / periods).to_string();
        let keys: Vec<(&str, &str)> =
            keys.iter().copied().chain([("rearrange.period_s", period.as_str())]).collect();
        measure(case, None, &keys, length)
    };
    Ok(ForecastRuns {
        variants: VARIANTS.iter().map(variant).collect::<Result<_, _>>()?,
        oracle: oracle(case, length)?,
    })
}

/// Runs the servers.
///
/// *Errors:* as of a run.
pub(super) fn run(setting: &Setting<'_>) -> Result<Findings, StudyError> {
    let cases = cases();
    let all = setting.map(&cases, |(_, case)| runs(case, setting.length))?;
    let columns = ["load", "copies by", "seek ms", "saved %", "hits %", "response ms", "copying %"];
    let mut table = Table::new("Copies by a forecast", columns).with_words(2);
    let mut measured = Vec::new();
    for ((name, _), ForecastRuns { variants, oracle: (seek_ms, hits) }) in cases.iter().zip(&all) {
        let plain = variants[0];
        for ((variant, ..), seeks) in VARIANTS.iter().zip(variants) {
            let numbers = [
                seeks.seek_ms,
                saved(seeks, &plain),
                100.0 * seeks.hits,
                seeks.response_ms,
                100.0 * seeks.copying,
            ];
            table.named_row([*name, *variant], numbers.map(Some));
        }
        let best = 100.0 * (1.0 - seek_ms / plain.seek_ms);
        table.named_row(
            [*name, "oracle of the next eighth"],
            [Some(*seek_ms), Some(best), Some(100.0 * hits), None, None],
        );
        let forecast = &variants[VARIANTS.len() - 1];
        match *name {
            "quick" => {
                measured.push(Measured::new("quick forecast", 100.0 * saved(forecast, &plain) / best));
            }
            "without skew" => {
                let slower = 100.0 * (forecast.response_ms / plain.response_ms - 1.0);
                measured.push(Measured::new("forecast without skew", slower));
            }
            _ => {}
        }
    }
    Ok(Findings::new(measured, [Section::new("Copies by a forecast").with_table(table)]))
}
