//! One run: streams on a rig of the study's disks, and the measurement of its counted time.

use crate::study::{Length, Setting, StudyError};
use headstack_model::{DriveSpec, Instant, Lbn, Nanos, Op, SpecError, drives};
use headstack_sim::{Engine, Rig, StreamLayer};
use headstack_workload::{
    Closed, Load, Member, Mix, Pattern, Poll, Region, Shape, Spacing, StreamShape, Streams,
};
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;
use std::ops::Range;

/// The node's disk.
pub(super) const DRIVE: &str = "wd800jd";

/// The simulated disk of chapters 1 and 3. It is not a shipped drive, because it is no product.
pub(super) const CHAPTER_3: &str = "streams-chapter-3";
const CHAPTER_3_FILE: &str = include_str!("../../studies/streams/chapter-3.toml");

/// Bytes in a KiB, and in a MiB.
pub(super) const KIB: u64 = 1 << 10;
pub(super) const MIB: u64 = 1 << 20;

const SECTOR: u64 = 512;

/// Numbers of streams in the figures whose curves are lost.
pub(super) const STREAMS: [u32; 4] = [10, 30, 60, 100];

/// The streams of a run, and the rig that serves them.
#[derive(Clone, Debug)]
pub(super) struct Plan {
    /// Keys of drives, buses, controllers and of the node, each with its value in TOML.
    pub(super) keys: Vec<(String, String)>,
    pub(super) has_node: bool,
    pub(super) drive: &'static str,
    /// Number of disks; each serves the given number of readers and writers.
    pub(super) disks: u32,
    /// Number of controllers, which share the disks equally. Each has a queue that is served in a sweep, unless a key says otherwise.
    pub(super) controllers: u32,
    pub(super) readers: u32,
    pub(super) writers: u32,
    pub(super) bytes: u64,
    /// Bytes between the starts of two streams; `None` spreads them evenly over the disk.
    pub(super) apart: Option<u64>,
    /// Seed of the random order in which streams begin, so that turns in order of arrival do not follow the disk; `None` is the order of
    /// their places.
    pub(super) order: Option<u64>,
    /// Whether each disk has a random reader of 4 KiB, too.
    pub(super) random: bool,
    /// Warm-up time, and the time that counts.
    pub(super) warm: Nanos,
    pub(super) counted: Nanos,
}

impl Plan {
    /// This number of readers of 64 KiB on one disk.
    pub(super) fn new(setting: &Setting<'_>, readers: u32) -> Plan {
        let secs = |full, quick| Nanos::from_secs(setting.length.pick(full, quick));
        Plan {
            keys: Vec::new(),
            has_node: false,
            drive: DRIVE,
            disks: 1,
            controllers: 0,
            readers,
            writers: 0,
            bytes: 64 * KIB,
            apart: None,
            order: None,
            random: false,
            warm: secs(60, 20),
            counted: secs(120, 20),
        }
    }

    /// The same with a key of the rig, whose value is a number, a boolean or a word.
    pub(super) fn with(mut self, key: &str, value: impl ToString) -> Plan {
        let value = value.to_string();
        let is_word = value.parse::<f64>().is_err() && value.parse::<bool>().is_err();
        self.has_node |= key.starts_with("node.");
        self.keys.push((key.to_string(), if is_word { format!("\"{value}\"") } else { value }));
        self
    }

    /// The same for a longer time, so that rounds of a minute and more hardly affect the means.
    pub(super) fn long(self, setting: &Setting<'_>) -> Plan {
        let times = setting.length.pick(4, 1);
        Plan { warm: Nanos(self.warm.0 * times), counted: Nanos(self.counted.0 * times), ..self }
    }

    /// The same with requests of this size.
    pub(super) fn of(self, bytes: u64) -> Plan {
        Plan { bytes, ..self }
    }

    /// The same with the disk's cache divided into `segments` of `bytes`, each of which is always filled to its end by read-ahead.
    pub(super) fn with_segments(self, segments: u64, bytes: u64) -> Plan {
        let sectors = bytes / SECTOR;
        self.with("drive.cache.segments", segments)
            .with("drive.cache.segment_sectors", sectors)
            .with("drive.cache.read_ahead_max_sectors", sectors - 1)
            .with("drive.cache.read_ahead_min_sectors", sectors - 1)
            .with("drive.cache.write_cache", "none")
            .with("drive.cache.write_segments", 1)
            .with("drive.cache.dirty_max_sectors", 1)
            .with("drive.cache.dirty_start_sectors", 1)
    }

    /// The same with a node of given R, D, N and M.
    pub(super) fn reported(self, r: u64, d: u32, n: u32, m: u64) -> Plan {
        self.with("node.memory_bytes", m)
            .with("node.read_ahead_bytes", r)
            .with("node.dispatch_set", d)
            .with("node.requests_per_turn", n)
            .with("node.queue_depth", d)
            .with("node.turns", "round-robin")
    }

    /// The keys of this table, one per line.
    fn keys_of(&self, table: &str) -> String {
        let own = self.keys.iter().filter_map(|(key, value)| Some((key.strip_prefix(table)?, value)));
        own.map(|(key, value)| format!("{key} = {value}\n")).collect()
    }

    pub(super) fn rig(&self) -> Result<Rig, StudyError> {
        let [drive, bus, controller] = ["drive.", "bus.", "controller."].map(|table| self.keys_of(table));
        let unless = |key: &str, line: &str| {
            if controller.contains(&format!("{key} = ")) { String::new() } else { line.to_string() }
        };
        let (order, depth) =
            (unless("order", "order = \"c-look\"\n"), unless("drive_depth", "drive_depth = 1\n"));
        let host = match self.keys_of("host.queue.") {
            keys if keys.is_empty() => keys,
            keys => format!("[host.queue]\n{keys}"),
        };
        let node = if self.has_node { format!("[node]\n{}", self.keys_of("node.")) } else { String::new() };
        let kind = |count: u32, of: u32| {
            format!(
                "[[drive]]\npreset = \"{}\"\ncount = {count}\nvolume = \"disk{of}-\"\non = \"bus{of}\"\n{drive}",
                self.drive
            ) + &format!("[[bus]]\nname = \"bus{of}\"\n{bus}")
        };
        let behind = |of: u32| {
            kind(self.disks / self.controllers, of)
                + &format!("controller = \"controller{of}\"\n[[controller]]\nname = \"controller{of}\"\n")
                + &format!("kind = \"smart\"\n{order}{depth}{controller}")
        };
        let parts = match self.controllers {
            0 => kind(self.disks, 0),
            many => (0..many).map(behind).collect(),
        };
        Ok(Rig::parse(&(host + &node + &parts), "streams", &mut load_drive)?)
    }

    /// The load of streams alone, on one disk.
    fn streams(&self, sectors: u64, device: u32) -> Result<Vec<Member>, StudyError> {
        let (op, count) = if self.writers > 0 { (Op::Write, self.writers) } else { (Op::Read, self.readers) };
        let one = || -> Result<Member, StudyError> {
            let spacing = self.apart.map_or(Spacing::Even, |bytes| Spacing::Interval(bytes / SECTOR));
            let requests = (self.bytes / SECTOR) as u32;
            let whole = StreamShape::reads(Region::whole(sectors), count, requests);
            let shape = StreamShape { op, spacing, alignment: 8, ..whole };
            let streams = Streams::new(shape, u64::MAX)?;
            let load: Box<dyn Load> = match self.order {
                None => Box::new(streams),
                Some(order) => {
                    let (part, places) = (sectors / u64::from(count), shuffled(count, order));
                    Box::new(Scattered { streams, part, places })
                }
            };
            Ok(Member { load, device, sources: count })
        };
        (count > 0).then(one).into_iter().collect()
    }

    /// The load on one disk: its streams, then the random reader.
    fn members(&self, rig: &Rig, device: u32) -> Result<Vec<Member>, StudyError> {
        let sectors = rig.volumes()[device as usize].sectors;
        let mut members = self.streams(sectors, device)?;
        if self.random {
            let region = Region::whole(sectors);
            let shape = Shape { region, pattern: Pattern::Random, sectors: 8, alignment: 8, read_share: 1.0 };
            let load = Box::new(Closed::new(shape, 1, u64::MAX, 1 + u64::from(device))?);
            members.push(Member { load, device, sources: 1 });
        }
        Ok(members)
    }

    /// The part of a run that counts.
    pub(super) fn counted_window(&self) -> Range<Instant> {
        let begin = Instant::ZERO + self.warm;
        begin..begin + self.counted
    }

    pub(super) fn run(&self) -> Result<StreamsRun, StudyError> {
        let rig = self.rig()?;
        let mut members = Vec::new();
        for device in 0..self.disks {
            members.extend(self.members(&rig, device)?);
        }
        let end = self.counted_window().end;
        self.play(&rig, &mut Mix::new(members, u64::MAX, end)?)
    }

    /// Runs a load that has the plan's number of sources on each disk.
    pub(super) fn play(&self, rig: &Rig, load: &mut dyn Load) -> Result<StreamsRun, StudyError> {
        let streams = self.readers.max(self.writers);
        let a_disk = (streams + u32::from(self.random)) as usize;
        let mut engine: Engine = rig.build(1)?;
        let window = self.counted_window();
        let mut books = Books::new(self.disks as usize * a_disk);
        engine.run(load, &mut |finished| {
            let completion = &finished.completion;
            if window.contains(&completion.completed) {
                let source = finished.source as usize;
                books.bytes[source] += u64::from(completion.request.sectors) * SECTOR;
                let response = completion.response().as_ms();
                let (count, sum) = &mut books.responses[source];
                (*count, *sum) = (*count + 1, *sum + response);
                if source % a_disk < streams as usize {
                    books.streams_ms.push(response as f32)
                } else {
                    books.random_ms.push(response as f32)
                }
            }
        });
        let memory =
            (0..self.disks as usize).filter_map(|volume| engine.layer(volume).map(StreamLayer::streams));
        let memory = memory.map(|streams| streams.view().memory.high_water_bytes).sum();
        Ok(books.outcome(a_disk, streams as usize, self.counted.as_secs(), memory))
    }
}

fn load_drive(name: &str) -> Result<DriveSpec, SpecError> {
    match name {
        CHAPTER_3 => DriveSpec::parse(CHAPTER_3_FILE, "studies/streams/chapter-3.toml"),
        shipped => drives::load(shipped),
    }
}

/// Evenly spaced streams, each at a place that a random order assigns to it.
struct Scattered {
    streams: Streams,
    /// Sectors from one place to the next.
    part: u64,
    /// The place of each stream.
    places: Vec<u64>,
}

impl Load for Scattered {
    fn poll(&mut self, now: Instant) -> Poll {
        let mut polled = self.streams.poll(now);
        if let Poll::Issue(issue) = &mut polled {
            let within = issue.request.lbn.0 - u64::from(issue.source) * self.part;
            // Whole blocks of 4 KiB, as each stream's first request.
            issue.request.lbn = Lbn((self.places[issue.source as usize] * self.part + within) / 8 * 8);
        }
        polled
    }

    fn handle_completion(&mut self, now: Instant, id: u64) {
        self.streams.handle_completion(now, id);
    }
}

/// The numbers below `count`, in a random order.
fn shuffled(count: u32, order: u64) -> Vec<u64> {
    let mut places: Vec<u64> = (0..u64::from(count)).collect();
    let mut random = Pcg64Mcg::seed_from_u64(order);
    for last in (1..places.len()).rev() {
        places.swap(last, random.random_range(0..=last));
    }
    places
}

/// The disk divided into this number of equal parts, one per stream, in a random order.
pub(super) fn shuffled_parts(sectors: u64, streams: u32) -> Vec<Region> {
    let part = sectors / u64::from(streams).max(1) / 8 * 8;
    shuffled(streams, 1).into_iter().map(|place| Region { first: Lbn(place * part), sectors: part }).collect()
}

struct Books {
    bytes: Vec<u64>,
    /// Requests of each source, and the sum of their response times.
    responses: Vec<(u64, f64)>,
    streams_ms: Vec<f32>,
    random_ms: Vec<f32>,
}

impl Books {
    fn new(sources: usize) -> Books {
        let responses = vec![(0, 0.0); sources];
        Books { bytes: vec![0; sources], responses, streams_ms: Vec::new(), random_ms: Vec::new() }
    }

    fn outcome(self, a_disk: usize, streams: usize, seconds: f64, memory_bytes: u64) -> StreamsRun {
        let of = |want_stream: bool| {
            let sources = self.bytes.iter().enumerate();
            let these = sources.filter(move |(source, _)| (source % a_disk < streams) == want_stream);
            these.map(|(_, bytes)| *bytes as f64 / seconds / 1e6).collect::<Vec<f64>>()
        };
        let means = self.responses.iter().enumerate().filter(|(source, _)| source % a_disk < streams);
        StreamsRun {
            stream_means_ms: means.map(|(_, (count, sum))| sum / (*count).max(1) as f64).collect(),
            streams_mb_s: of(true),
            random_mb_s: of(false).iter().sum(),
            streams_ms: sorted(self.streams_ms),
            random_ms: sorted(self.random_ms),
            memory_bytes,
        }
    }
}

fn sorted(mut times: Vec<f32>) -> Vec<f32> {
    times.sort_unstable_by(f32::total_cmp);
    times
}

#[derive(Clone, Debug)]
pub(super) struct StreamsRun {
    pub(super) streams_mb_s: Vec<f64>,
    pub(super) random_mb_s: f64,
    /// The mean response time of each stream.
    pub(super) stream_means_ms: Vec<f64>,
    /// Response times, ascending.
    pub(super) streams_ms: Vec<f32>,
    pub(super) random_ms: Vec<f32>,
    /// The most memory that the nodes used.
    pub(super) memory_bytes: u64,
}

impl StreamsRun {
    pub(super) fn mb_s(&self) -> f64 {
        self.streams_mb_s.iter().sum()
    }

    /// The slowest stream's throughput as a share of the mean.
    pub(super) fn slowest(&self) -> f64 {
        let least = self.streams_mb_s.iter().copied().fold(f64::INFINITY, f64::min);
        least * self.streams_mb_s.len() as f64 / self.mb_s()
    }

    pub(super) fn mean_ms(&self) -> f64 {
        self.streams_ms.iter().map(|ms| f64::from(*ms)).sum::<f64>() / self.streams_ms.len().max(1) as f64
    }

    /// The longest mean response time of a stream, divided by the shortest.
    pub(super) fn longest_over_shortest_mean(&self) -> f64 {
        let means = self.stream_means_ms.iter().copied();
        means.clone().fold(0.0, f64::max) / means.fold(f64::INFINITY, f64::min)
    }

    /// The share of the requests of streams that took no longer than this.
    pub(super) fn share_within(&self, ms: f32) -> f64 {
        let within = self.streams_ms.partition_point(|response| *response <= ms);
        within as f64 / self.streams_ms.len().max(1) as f64
    }

    /// The response time that this share of the requests of streams does not exceed.
    pub(super) fn stream_ms(&self, share: f64) -> f64 {
        quantile(&self.streams_ms, share)
    }

    pub(super) fn worst_ms(&self) -> f64 {
        self.streams_ms.last().map_or(0.0, |ms| f64::from(*ms))
    }

    pub(super) fn random_mean_ms(&self) -> f64 {
        self.random_ms.iter().map(|ms| f64::from(*ms)).sum::<f64>() / self.random_ms.len().max(1) as f64
    }

    /// The response time that this share of the random reads does not exceed.
    pub(super) fn random_ms(&self, share: f64) -> f64 {
        quantile(&self.random_ms, share)
    }
}

pub(super) fn quantile(sorted_ms: &[f32], share: f64) -> f64 {
    let rank = (share * sorted_ms.len() as f64).ceil() as usize;
    let place = rank.clamp(1, sorted_ms.len().max(1)) - 1;
    sorted_ms.get(place).map_or(0.0, |ms| f64::from(*ms))
}

/// The disk's own bandwidth where this number of streams begins: 32 MiB are read at each place in requests of 1 MiB, without the
/// positioning before them.
pub(super) fn own_mb_s(streams: u32, length: Length) -> Result<f64, StudyError> {
    rate_at((0..u64::from(streams)).map(|stream| (stream, u64::from(streams))), length)
}

/// The disk's own bandwidth at its innermost tracks.
pub(super) fn innermost_mb_s(length: Length) -> Result<f64, StudyError> {
    rate_at([(999, 1000)], length)
}

/// The bandwidth over places, each a part of the disk.
fn rate_at(places: impl IntoIterator<Item = (u64, u64)>, length: Length) -> Result<f64, StudyError> {
    let rig = Rig::from_drive(drives::load(DRIVE)?);
    let sectors = rig.volumes()[0].sectors;
    let (large, requests) = (MIB / SECTOR, length.pick(32, 8));
    let (mut bytes, mut seconds) = (0.0, 0.0);
    for (part, of) in places {
        let first = Lbn(sectors / of * part / 8 * 8);
        let region = Region { first, sectors: requests * large };
        let shape = StreamShape::reads(region, 1, large as u32);
        let mut engine = rig.build(1)?;
        let mut begun = None;
        engine.run(&mut Streams::new(shape, requests)?, &mut |finished| {
            // The time before the end of the first request is positioning.
            begun.get_or_insert(finished.completion.completed);
        });
        bytes += ((requests - 1) * MIB) as f64;
        seconds += (engine.now() - begun.unwrap_or(Instant::ZERO)).as_secs();
    }
    Ok(bytes / seconds / 1e6)
}
