//! What the study left open: RAID-5. The same drives as an array without parity and with it, by stripe unit.
//!
//! Modelled: a volume striped over sixteen drives; random requests at multiples of 4 KiB, so that most begin inside a unit; parity that
//! rotates over the drives; small writes with the fewest reads. There are sixteen drives because the published rule for writes was made for
//! that number.

use super::cell::{self, Buffer};
use super::claims::KIB;
use super::claims::size;
use crate::study::{Setting, StudyError};
use headstack::report::{Section, Table};
use headstack_model::{Instant, Nanos};
use headstack_policy::stripe::advise::{self, DiskTimes, Question};
use headstack_policy::stripe::{
    Array, Organisation, Policy, ReadChoice, Rotation, Shape as ArrayShape, Unit, WriteOrder,
};
use headstack_sim::stats::Batches;
use headstack_sim::{ArrayVolume, Engine, HostSpec};
use headstack_workload::process::{Processes, ThinkShape};
use headstack_workload::{Distribution, Pattern, Region, Shape};

const DISKS: u32 = 16;

const REQUESTS: u64 = 1000;

/// Stripe units in blocks: 4 KiB to 1 MiB.
const UNITS: [u64; 9] = [8, 16, 32, 64, 128, 256, 512, 1024, 2048];

/// Blocks of a request: 16 KiB, 128 KiB and 1 MiB.
const SIZES: [u32; 3] = [32, 256, 2048];

const MPLS: [u32; 3] = [1, 4, 16];

const ORGANISATIONS: [Organisation; 2] = [Organisation::Striping, Organisation::Raid5];

/// Where requests begin, in blocks.
const ALIGNMENT: u32 = 8;

#[derive(Clone, Copy, Debug)]
struct Point {
    organisation: Organisation,
    read_share: f64,
    request: u32,
    mpl: u32,
    unit: u64,
}

/// Runs of one load, over units.
type Line = Vec<(u64, f64)>;

/// What RAID-5 changes compared with an array without parity.
///
/// *Errors:* a run that cannot be made.
pub(super) fn section(setting: &Setting<'_>, disk: &DiskTimes) -> Result<Section, StudyError> {
    let mut points = Vec::new();
    for organisation in ORGANISATIONS {
        for read_share in [1.0, 0.0] {
            for request in SIZES {
                for mpl in MPLS {
                    points.extend(UNITS.map(|unit| Point { organisation, read_share, request, mpl, unit }));
                }
            }
        }
    }
    let responses = setting.map(&points, measure)?;
    let lines: Vec<Line> = responses
        .chunks(UNITS.len())
        .map(|line| UNITS.into_iter().zip(line.iter().copied()).collect())
        .collect();
    let (plain, parity) = lines.split_at(lines.len() / 2);
    let first = points.iter().step_by(UNITS.len());
    let columns = [
        "load",
        "request",
        "MPL",
        "best KiB, RAID-0",
        "best KiB, RAID-5",
        "RAID-5's response, % of RAID-0's",
        "chen-lee costs %",
        "chen-patterson costs %",
        "chen-lee-writes costs %",
    ];
    let mut table = Table::new("Sixteen disks with and without parity", columns).with_words(2);
    for ((point, plain), parity) in first.zip(plain).zip(parity) {
        let least = |line: &Line| line.iter().map(|(_, ms)| *ms).fold(f64::INFINITY, f64::min);
        let kind = if point.read_share > 0.5 { "reads" } else { "writes" };
        let best = [plain, parity].map(|line| best(line) as f64 / KIB);
        let costs = ["chen-lee", "chen-patterson", "chen-lee-writes"]
            .map(|rule| 100.0 * (at(parity, unit_of(rule, point, disk)) / least(parity) - 1.0));
        let numbers = [f64::from(point.mpl)].into_iter().chain(best);
        let numbers = numbers.chain([100.0 * least(parity) / least(plain)]).chain(costs);
        table.named_row([kind, &size(u64::from(point.request))], numbers);
    }
    Ok(Section::new("What was left undone: RAID-5")
        .with_text("Random requests at multiples of 4 KiB, no pause between. Best is the largest unit within 2 % of the least response; what a rule costs is with its unit taken to the nearest power of two, on RAID-5.")
        .with_table(table))
}

fn unit_of(rule: &str, point: &Point, disk: &DiskTimes) -> f64 {
    let entry = advise::by_name(rule).expect("the rule is listed");
    entry.unit(&Question {
        disk,
        disks: DISKS,
        concurrency: f64::from(point.mpl),
        request_sectors: f64::from(point.request),
        parity_writes: None,
        alignment: None,
    })
}

/// The response with the unit nearest to this one.
fn at(line: &Line, unit: f64) -> f64 {
    let far = |(other, _): &&(u64, f64)| (*other as f64 / unit).log2().abs();
    let nearest = line.iter().min_by(|a, b| far(a).total_cmp(&far(b)));
    nearest.map_or(f64::NAN, |(_, ms)| *ms)
}

/// The largest unit whose response counts as equal to the least.
fn best(line: &Line) -> u64 {
    let least = line.iter().map(|(_, ms)| *ms).fold(f64::INFINITY, f64::min);
    let alike = line.iter().filter(|(_, ms)| *ms <= least * (1.0 + super::grid::ALIKE));
    alike.map(|(unit, _)| *unit).max().unwrap_or(0)
}

fn measure(point: &Point) -> Result<f64, StudyError> {
    let input = |error: &dyn ToString| StudyError::Input(error.to_string());
    let devices = cell::devices(&cell::drive(Buffer::None)?, DISKS)?;
    let members: Vec<u64> = devices.iter().map(|device| device.sectors()).collect();
    let shape = ArrayShape {
        organisation: point.organisation,
        members,
        unit: Unit::Sectors(point.unit),
        copies: 2,
        read_choice: ReadChoice::default(),
        rotation: Rotation::default(),
        parity_unit_sectors: None,
        policy: Policy::FewestReads,
        write_order: WriteOrder::default(),
        failed: Vec::new(),
        spares: 0,
        seed: 0,
    };
    let array = Array::new(shape).map_err(|error| input(&error))?;
    let region = Region::whole(array.sectors());
    let arrays = vec![ArrayVolume::new(array, (0..DISKS).collect())];
    let mut engine =
        Engine::with_arrays(devices, arrays, &HostSpec::default()).map_err(|error| input(&error))?;
    let (pattern, sectors, read_share) = (Pattern::Random, point.request, point.read_share);
    let shape = Shape { region, pattern, sectors, alignment: ALIGNMENT, read_share };
    let think = Distribution::Constant(Nanos::ZERO);
    let mut load = Processes::thinking(&ThinkShape { shape, processes: point.mpl, think }, REQUESTS, 1)?;
    let mut batches = Batches::new();
    engine.run(&mut load, &mut |finished| {
        batches.record(finished.completion.completed, finished.completion.response(), 0);
    });
    let found = batches.confidence(Instant::ZERO);
    found.map(|found| found.response_ms.mean).ok_or_else(|| input(&"too few requests for a mean"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parity_slows_small_writes_and_leaves_reads_unchanged() {
        let ms = |organisation, read_share| {
            let point = Point { organisation, read_share, request: 32, mpl: 1, unit: 128 };
            measure(&point).expect("the point can be run")
        };
        let [plain, parity] = ORGANISATIONS.map(|organisation| ms(organisation, 0.0));
        // The old data and parity are read first, and their sectors pass again a revolution later.
        let turn = 60e3 / 7200.0;
        assert!(parity > plain + 0.9 * turn, "{plain} and {parity} ms");
        let [plain, parity] = ORGANISATIONS.map(|organisation| ms(organisation, 1.0));
        assert!((parity / plain - 1.0).abs() < 0.05, "{plain} and {parity} ms");
    }
}
