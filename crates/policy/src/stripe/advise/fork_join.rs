//! Our own advisor: the unit with the smallest expected response, by queueing theory.
//!
//! A request over d disks is d threads; it ends with the slowest. More disks leave less to transfer on each, but position d arms,
//! which keeps all disks busier and lengthens the queues; and the slowest of many positionings is slower than one. The decisive
//! quantity is the number of other requests that a request meets in the array. It is measured, with its variance and the sizes of
//! requests. From these follows the expected response with any unit:
//!
//! 1. Mean-value analysis. A request that meets n others finds at each disk the threads that n requests have there when n − 1
//!    others are present: those of a request for the share thread time over request time. All but the one in service cost a whole
//!    service; that one costs the remainder of its service.
//! 2. The remainder of a service is its mean residual life at a random moment. But a process that issues its next request as soon
//!    as the last has ended finds, on the disks that it uses again, a thread that has just begun. If it thinks in between, the
//!    thread has progressed for that time.
//! 3. The slowest thread exceeds the mean one as the slowest positioning does, in proportion to the standard deviation of a
//!    thread's time. Threads over the same disks wait equally for each other, and that part adds no spread. Nor do seeks where the
//!    arms move together, as when every request uses all disks.
//! 4. The number of others when the unit changes: a faster request leaves its process thinking for a larger share of the time, so
//!    there are as many others, or fewer. The variance of their number gives their share of time in the array: zero where all are
//!    always there, that of Poisson's distribution for an unlimited population.
//!
//! 5. On RAID-5 a write that must read first is two stages, each a fork and join of its own ([`super::parity`]). A disk that no other
//!    request has used in between writes what it has read after whole turns; one that has been used positions its arm again.
//!
//! Assumptions: requests begin at random places, at a unit's start or at multiples of a stated alignment, and disks serve in order of
//! arrival.
//!
//! *Source:* ours. Mean-value analysis: Reiser and Lavenberg 1980; of fork and join: Varki 1999.

use super::parity::{ForkStage, write_stages};
use super::span::spans;
use super::{DiskTimes, Entry, Question};
use headstack_model::Nanos;

pub(super) const ENTRY: Entry = Entry {
    name: "fork-join",
    summary: "ours: the power of two with the least expected response",
    source: "mean-value analysis of fork and join",
    advise: |question: &Question<'_>| {
        let sizes = [Size { sectors: question.request_sectors, share: 1.0 }];
        let aligned = exponent(question.request_sectors);
        // Where a request begins within a unit, a longer unit is divided by fewer of them.
        let largest = question.alignment.map_or(aligned, |_| exponent(UNALIGNED_LEAST).max(aligned + 3));
        let load = Observed { sizes: &sizes, others: Others::always(question.others()), unit: 1 << aligned };
        let mut advisor = ForkJoin::new(question.disk.clone(), question.disks);
        advisor.parity_writes = question.parity_writes;
        advisor.alignment = question.alignment;
        advisor.choose(&load, (0..=largest).map(|power| 1 << power)) as f64
    },
};

/// A larger unit is chosen where its response is longer by no more than this share: it leaves disks to other requests.
const TIE: f64 = 0.01;

/// Blocks of the longest unit that is tried for requests that begin anywhere; eight times the request if that is more.
const UNALIGNED_LEAST: f64 = 4096.0;

/// Upper bound of the number of other requests.
const MOST_OTHERS: f64 = 1000.0;

/// The power of two that is not less than a size.
pub(super) fn exponent(sectors: f64) -> u32 {
    (sectors.max(1.0) as u64).next_power_of_two().trailing_zeros()
}

/// Requests of one size.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Size {
    /// Blocks.
    pub sectors: f64,
    /// Share of the requests.
    pub share: f64,
}

/// The other requests that a request meets in the array on arrival.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Others {
    /// Mean of their number.
    pub mean: f64,
    /// Variance of their number.
    pub variance: f64,
}

impl Others {
    /// A constant number: processes that never think.
    pub fn always(mean: f64) -> Others {
        Others { mean, variance: 0.0 }
    }

    /// The share of the time for which the issuing processes have a request in the array.
    fn presence(&self) -> f64 {
        if self.mean > 0.0 { (1.0 - self.variance / self.mean).clamp(0.0, 1.0) } else { 1.0 }
    }
}

/// An array's observations of its load.
#[derive(Clone, Copy, Debug)]
pub struct Observed<'a> {
    /// The sizes of requests; shares add up to 1.
    pub sizes: &'a [Size],
    /// The requests that a request meets.
    pub others: Others,
    /// The stripe unit during the observation, in blocks.
    pub unit: u64,
}

/// The issuing processes, as far as others depend on them.
#[derive(Clone, Copy, Debug)]
struct Requesters {
    /// The requests that a request meets with the observed unit, and its response then.
    mean: f64,
    response: f64,
    presence: f64,
    /// Time from the end of a request to its process's next one, in ns.
    think: f64,
}

impl Requesters {
    /// The requests that a request meets if its response is `response`.
    fn met(&self, response: f64) -> f64 {
        let longer = response / self.response;
        let met = self.mean * longer / (self.presence * longer + 1.0 - self.presence);
        met.min(MOST_OTHERS)
    }
}

#[derive(Clone, Copy, Debug)]
struct Class {
    /// Share of the requests. A request of two stages counts in both.
    share: f64,
    disks: f64,
    /// Mean service of a thread, and the mean remainder of it when a request arrives, in ns.
    service: f64,
    residual: f64,
    /// Of two requests that have a disk in common, the share of their disks that they have in common.
    shared: f64,
    /// By how much the slowest of its threads exceeds the mean one without queueing.
    spread: f64,
    /// Mean time of a thread and of the whole request, waiting included.
    thread: f64,
    response: f64,
}

/// Predicts responses of an array of one kind of disk.
#[derive(Clone, Debug)]
pub struct ForkJoin {
    disk: DiskTimes,
    disks: u32,
    slowest: Vec<f64>,
    /// Share of writes, of a RAID-5.
    parity_writes: Option<f64>,
    /// Requests begin at multiples of this number of blocks; `None`: at the start of a unit.
    alignment: Option<f64>,
}

impl ForkJoin {
    /// An advisor for an array of `disks` of these disks.
    pub fn new(disk: DiskTimes, disks: u32) -> ForkJoin {
        let disks = disks.max(1);
        ForkJoin { slowest: disk.slowest(disks), disk, disks, parity_writes: None, alignment: None }
    }

    /// The same disks as a RAID-5, of whose requests the share `writes` writes. At least three disks.
    pub fn with_parity(self, writes: f64) -> ForkJoin {
        ForkJoin { parity_writes: Some(writes.clamp(0.0, 1.0)), ..self }
    }

    /// The expected mean response with a stripe unit of `unit` blocks.
    pub fn response(&self, load: &Observed<'_>, unit: u64) -> Nanos {
        Nanos(self.predict(load, &self.requesters(load), unit) as u64)
    }

    /// The best of these units; of units with about equal responses the largest.
    pub fn choose(&self, load: &Observed<'_>, units: impl Iterator<Item = u64>) -> u64 {
        let requesters = self.requesters(load);
        let responses: Vec<(u64, f64)> =
            units.map(|unit| (unit, self.predict(load, &requesters, unit))).collect();
        largest_of_the_best(&responses).unwrap_or(load.unit)
    }

    /// Fills in the mean responses in ns of these units.
    pub(super) fn predict_all(&self, load: &Observed<'_>, responses: &mut [(u64, f64)]) {
        let requesters = self.requesters(load);
        for (unit, response) in responses {
            *response = self.predict(load, &requesters, *unit);
        }
    }

    fn requesters(&self, load: &Observed<'_>) -> Requesters {
        let presence = load.others.presence();
        let mean = load.others.mean.clamp(0.0, MOST_OTHERS);
        let mut requesters = Requesters { mean, response: 1.0, presence, think: 0.0 };
        // The think time follows from the response, and has little effect on it: two iterations are enough.
        for _ in 0..2 {
            let mut classes = self.classes(load.sizes, load.unit, &requesters);
            requesters.response = self.meeting(&mut classes, mean, presence);
            requesters.think = if presence > 0.0 {
                requesters.response * (1.0 - presence) / presence
            } else {
                f64::INFINITY
            };
        }
        requesters
    }

    fn predict(&self, load: &Observed<'_>, requesters: &Requesters, unit: u64) -> f64 {
        let mut classes = self.classes(load.sizes, unit, requesters);
        let (mut met, mut response) = (requesters.mean, 0.0);
        for _ in 0..30 {
            // The processes stay the same: the share of their time in the array follows the number of requests that they meet.
            let presence =
                if requesters.mean > 0.0 { requesters.presence * met / requesters.mean } else { 1.0 };
            response = self.meeting(&mut classes, met, presence.min(1.0));
            let next = requesters.met(response);
            if (next - met).abs() <= 1e-4 * met {
                break;
            }
            met = (met + next) / 2.0;
        }
        response
    }

    /// The stages of requests with a unit: one each, except for writes on RAID-5.
    fn stages(&self, sizes: &[Size], unit: u64) -> Vec<ForkStage> {
        let disks = f64::from(self.disks);
        let writes = self.parity_writes.filter(|_| self.disks > 2);
        let row = (self.disks.max(2) - 1) as u64 * unit;
        let begins_with_row = self.alignment.is_none_or(|alignment| (alignment as u64).is_multiple_of(row));
        let of_units = |size: &Size, share: f64, units: f64| {
            let over = units.min(disks);
            let whole =
                |share| ForkStage { share, disks: over, sectors: size.sectors / over, rewrites: false };
            let Some(writes) = writes else { return vec![whole(share)] };
            let mut stages =
                write_stages(share * writes, size.sectors, (units, unit as f64), disks, begins_with_row);
            stages.push(whole(share * (1.0 - writes)));
            stages
        };
        let all = sizes.iter().flat_map(|size| {
            let spans = spans(size.sectors, unit as f64, self.alignment);
            spans.into_iter().flat_map(move |(share, units)| of_units(size, size.share * share, units))
        });
        all.filter(|stage| stage.share > 0.0).collect()
    }

    /// The classes of requests, or of their stages, with a unit, before any of them waits.
    fn classes(&self, sizes: &[Size], unit: u64, requesters: &Requesters) -> Vec<Class> {
        let stages = self.stages(sizes, unit);
        let threads: f64 = stages.iter().map(|stage| stage.share * stage.disks).sum();
        // The disks that a process uses again.
        let back = (threads / f64::from(self.disks)).min(1.0);
        let class = |stage: &ForkStage| {
            let disks = stage.disks;
            // How likely another request has moved a disk's arm since the stage before.
            let moved = if stage.rewrites { (requesters.mean * back).min(1.0) } else { 1.0 };
            let service =
                self.disk.service(stage.sectors) * moved + self.disk.rewrite(stage.sectors) * (1.0 - moved);
            let random = (service * service + self.disk.variance()) / (2.0 * service);
            let residual = random * (1.0 - back) + left_after(requesters.think, service) * back;
            let with =
                |other: &ForkStage| other.share * other.disks / threads * self.shared(disks, other.disks);
            let shared: f64 = stages.iter().map(with).sum();
            // The share of the last threads at two of its disks that belonged to one request, and left both arms at one place.
            let together = shared / (2.0 - shared);
            let apart = self.slowest[disks as usize - 1];
            let spread = apart * (1.0 - together) + self.disk.longest_latency(disks) * together;
            let spread = if disks > 1.0 { spread * moved } else { 0.0 };
            let (thread, response) = (service, service + spread);
            Class { share: stage.share, disks, service, residual, shared, spread, thread, response }
        };
        stages.iter().map(class).collect()
    }

    /// Of the requests over `theirs` neighbouring disks that use one of `mine`, the share that uses another of `mine` too, as a
    /// mean over all pairs of `mine`.
    fn shared(&self, mine: f64, theirs: f64) -> f64 {
        let disks = f64::from(self.disks);
        let (mut sum, mut pairs) = (0.0, 0.0);
        for distance in 1..mine as u32 {
            let (count, distance) = (mine - f64::from(distance), f64::from(distance));
            let both = (theirs - distance).max(0.0) + (theirs - (disks - distance)).max(0.0);
            sum += count * (both / theirs).min(1.0);
            pairs += count;
        }
        if pairs > 0.0 { sum / pairs } else { 0.0 }
    }

    /// Mean response of requests that meet `others` others on average, which are present for a share of the time.
    fn meeting(&self, classes: &mut [Class], others: f64, presence: f64) -> f64 {
        for class in classes.iter_mut() {
            (class.thread, class.response) = (class.service, class.service + class.spread);
        }
        let mut response = mean_response(classes);
        if presence > 0.9999 {
            for count in 1..=others as u32 {
                response = self.step(classes, f64::from(count));
            }
            let part = others.fract();
            return response + part * (self.step(classes, others.floor() + 1.0) - response);
        }
        // How likely it is to meet n others, from n − 1 (Panjer): binomial, or Poisson where the crowd has no end.
        let ratio = -presence / (1.0 - presence);
        let offset = others * (1.0 - ratio) - ratio;
        let reach = others + 8.0 * (others * (1.0 - presence)).sqrt() + 2.0;
        let end = if presence > 0.0 { (others / presence).ceil() } else { MOST_OTHERS };
        let (mut weight, mut total) = (1.0, 1.0);
        for count in 1..=reach.min(end).min(MOST_OTHERS) as u32 {
            weight *= (ratio + offset / f64::from(count)).max(0.0);
            let met = self.step(classes, f64::from(count));
            total += weight;
            // A mean that is carried along does not overflow as sums would.
            response += (met - response) * (weight / total);
            if total > 1e200 {
                (weight, total) = (weight / total, 1.0);
            }
        }
        response
    }

    /// One step of the recursion: requests that meet `others` others, where `classes` has the values for one fewer. Returns their
    /// mean response.
    fn step(&self, classes: &mut [Class], others: f64) -> f64 {
        let disks = f64::from(self.disks);
        let in_flight: f64 = classes.iter().map(|class| class.share * class.response).sum();
        // Threads of others at a disk: all of them, and those in service.
        let (mut queue, mut busy, mut work, mut ahead) = (0.0, 0.0, 0.0, 0.0);
        for class in classes.iter() {
            let threads = others * class.share / in_flight * class.disks / disks;
            queue += threads * class.thread;
            busy += threads * class.service;
            work += threads * class.thread * class.service;
            ahead += threads * class.service * (class.residual - class.service);
        }
        let in_service = if busy > 1.0 { 1.0 / busy } else { 1.0 };
        let wait = work + ahead * in_service;
        let scatter = queue * (1.0 - queue / others).max(0.0);
        let service = if queue > 0.0 { work / queue } else { 0.0 };
        let variance = self.disk.variance();
        for class in classes.iter_mut() {
            class.thread = wait + class.service;
            let waits = scatter * service * service * (1.0 - class.shared) + queue * variance;
            let wider = if variance > 0.0 { (1.0 + waits / variance).sqrt() } else { 1.0 };
            class.response = class.thread + class.spread * wider;
        }
        mean_response(classes)
    }
}

/// Mean remainder of a service that has lasted for an exponential time of this mean and is not over.
fn left_after(think: f64, service: f64) -> f64 {
    if think < 1e-6 * service {
        return service;
    }
    if think > 1e6 * service {
        return service / 2.0;
    }
    let over = -libm::expm1(-service / think);
    (service - think * over) / over
}

fn mean_response(classes: &[Class]) -> f64 {
    classes.iter().map(|class| class.share * class.response).sum()
}

/// The largest unit whose response is within a hundredth of the minimum; `None` for an empty list.
pub(super) fn largest_of_the_best(responses: &[(u64, f64)]) -> Option<u64> {
    let least = responses.iter().map(|(_, response)| *response).fold(f64::INFINITY, f64::min);
    let good = responses.iter().filter(|(_, response)| *response <= least * (1.0 + TIE));
    good.map(|(unit, _)| *unit).max()
}

#[cfg(test)]
mod tests {
    use super::*;
    use headstack_model::drives;
    use headstack_model::spec::ReadAhead;

    fn advisor(disks: u32) -> ForkJoin {
        let mut spec = drives::load("ultrastar-dfhc-2gb").expect("the drive is shipped");
        spec.cache.read_ahead = ReadAhead::None;
        let disk = DiskTimes::from_spec(&spec).expect("shipped drives hold");
        ForkJoin::new(disk.with_commands_of(256), disks)
    }

    fn alone(sectors: f64) -> [Size; 1] {
        [Size { sectors, share: 1.0 }]
    }

    fn load(sizes: &[Size], others: Others) -> Observed<'_> {
        Observed { sizes, others, unit: 1 << 20 }
    }

    #[test]
    fn lone_request_takes_as_long_as_its_slowest_disk() {
        let (advisor, sizes) = (advisor(4), alone(512.0));
        let load = load(&sizes, Others::always(0.0));
        let on_one = advisor.disk.service(512.0);
        assert_eq!(advisor.response(&load, 512), Nanos(on_one as u64));
        // Over all four the arms move together: the longest of four latencies, 0.8 of a turn, for a mean one of 0.5.
        let on_four = advisor.disk.service(128.0) + 0.3 * 60e9 / 7200.0;
        assert!((advisor.response(&load, 128).0 as f64 - on_four).abs() < 1e3);
    }

    #[test]
    fn many_requests_are_served_at_the_rate_of_the_disks() {
        let (advisor, sizes) = (advisor(4), alone(1024.0));
        let load = load(&sizes, Others::always(400.0));
        for (unit, disks) in [(1024, 1.0), (512, 2.0), (256, 4.0)] {
            let busy = 401.0 * disks / 4.0 * advisor.disk.service(1024.0 / disks);
            let ratio = advisor.response(&load, unit).0 as f64 / busy;
            assert!((0.99..1.05).contains(&ratio), "{unit} blocks: {ratio} of what the disks allow");
        }
    }

    #[test]
    fn lone_small_write_on_parity_takes_a_turn_more_than_its_reads() {
        let advisor = advisor(5);
        let response = |advisor: &ForkJoin, sectors, unit| {
            let sizes = alone(sectors);
            advisor.response(&load(&sizes, Others::always(0.0)), unit).0 as f64
        };
        // Old data and old parity: as a read of two units.
        let reads = response(&advisor, 16.0, 8);
        let written = response(&advisor.with_parity(1.0), 8.0, 128);
        assert!((written - reads - 60e9 / 7200.0).abs() < 1e3, "{written} ns, reads {reads}");
    }

    #[test]
    fn writes_on_parity_want_whole_rows_and_reads_do_not() {
        let spec = drives::load("ultrastar-dfhc-2gb").expect("the drive is shipped");
        let advisor = ForkJoin::new(DiskTimes::from_spec(&spec).expect("shipped drives hold"), 5);
        let unit = |advisor: &ForkJoin, others| {
            let sizes = alone(1024.0);
            advisor.choose(&load(&sizes, Others::always(others)), (0..=10).map(|power| 1 << power))
        };
        let (reading, writing) = (advisor.clone().with_parity(0.0), advisor.clone().with_parity(1.0));
        assert_eq!((unit(&writing, 0.0), unit(&writing, 7.0)), (256, 256), "four units are a row");
        assert_eq!(unit(&reading, 7.0), unit(&advisor, 7.0), "reads are those of an array without parity");
        assert!(unit(&reading, 7.0) > 256);
    }

    #[test]
    fn chosen_unit_never_shrinks_as_concurrency_grows() {
        let advisor = advisor(4);
        let units = |others| {
            let unit = |power: u32| {
                let sizes = alone(f64::from(1 << power));
                advisor.choose(&load(&sizes, Others::always(others)), (0..=13).map(|power| 1 << power))
            };
            (2..=13).map(unit).collect::<Vec<_>>()
        };
        let all = [0.0, 1.0, 3.0, 7.0, 15.0].map(units);
        for more in all.windows(2) {
            assert!(more[0].iter().zip(&more[1]).all(|(few, many)| few <= many), "{more:?}");
        }
        // A small request is never worth a second arm; a large one is, whatever the load.
        assert!(all.iter().all(|units| units[0] >= 4 && *units.last().expect("there are sizes") < 1 << 13));
    }

    #[test]
    fn varying_concurrency_lowers_the_response() {
        let (advisor, sizes) = (advisor(4), alone(1024.0));
        let response = |variance| {
            let load = load(&sizes, Others { mean: 4.0, variance });
            advisor.response(&load, 256)
        };
        // With a unit that is faster than the observed one, thinking processes are present less often.
        assert!(response(2.0) < response(0.0));
        assert!(response(4.0) < response(2.0));
    }

    #[test]
    fn response_to_mixed_sizes_lies_between_its_parts() {
        let advisor = advisor(4);
        let response = |sizes: &[Size]| advisor.response(&load(sizes, Others::always(5.0)), 256).0;
        let (small, large) = (alone(16.0), alone(4096.0));
        let mix = [Size { sectors: 16.0, share: 0.5 }, Size { sectors: 4096.0, share: 0.5 }];
        assert!(response(&small) < response(&mix) && response(&mix) < response(&large));
    }
}
