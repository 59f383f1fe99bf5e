//! The conditions under which drives were measured: a load, a host and a drive each. What was found stands in `expect.tsv`.

/// What a load has in common with others: the classes by which errors are counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Class {
    SequentialLarge,
    SequentialSmall,
    DepthOne,
    DepthMany,
    Tail,
    Quantiles,
    RandomWrites,
    Flushes,
    Shingled,
}

impl Class {
    pub(super) const ALL: [(Class, &'static str); 9] = [
        (Class::SequentialLarge, "sequential, large requests"),
        (Class::SequentialSmall, "sequential, small requests"),
        (Class::DepthOne, "random reads at depth 1"),
        (Class::DepthMany, "random reads at depth 2 and more"),
        (Class::Tail, "99th percentile"),
        (Class::Quantiles, "other quantiles"),
        (Class::RandomWrites, "random writes"),
        (Class::Flushes, "flushes"),
        (Class::Shingled, "shingled: records and zones"),
    ];

    pub(super) fn name(self) -> &'static str {
        Class::ALL.iter().find(|(class, _)| *class == self).map_or("", |(_, name)| name)
    }

    /// The class of a figure of a load of this class.
    pub(super) fn of_figure(self, figure: &str) -> Class {
        match figure {
            _ if figure.ends_with("p99_ms") || figure.ends_with("p99_over_mean") => Class::Tail,
            "access_ms" | "mean_ms" => Class::DepthOne,
            _ if figure.ends_with("_ms") && figure.contains('p') => Class::Quantiles,
            _ => self,
        }
    }
}

/// How long a job of a fio file runs.
#[derive(Clone, Copy, Debug)]
pub(super) enum Extent {
    /// This number of requests.
    Count(u64),
    /// This number of seconds, after others that are not measured.
    Seconds { skip: u64, run: u64 },
    /// As its keys say.
    Keys,
}

/// What is measured.
#[derive(Clone, Copy, Debug)]
pub(super) enum Load {
    /// A job of a fio file on the drive behind a host with these keys.
    Job { keys: &'static str, extent: Extent, host: &'static [(&'static str, &'static str)] },
    /// The mean rate of a job over these depths.
    MeanOverDepths { keys: &'static str, extent: Extent, host: &'static [(&'static str, &'static str)] },
    /// The rate of a job over that of another one.
    Growth { above: &'static str, below: &'static str },
    /// The rate of synced writes with the write cache off over that with it on.
    SyncedOffOverOn,
    /// The rates over the disk and the access time, as HD Tune measures them.
    Scan,
    /// Mean time of a FLUSH after this number of cached writes at random places.
    Flush { writes: u64 },
    /// Reads of which a fifth has a guideline of 50 ms.
    DurationLimits,
    /// Synced records of this size at random places.
    Records { mib: u64 },
    /// Synced records of 1 MiB, one a second.
    PacedRecords,
    /// Synced records of 256 KiB in order.
    OrderedRecords,
}

/// A load on a drive. Its name begins with that of the drive and a dot.
#[derive(Clone, Copy, Debug)]
pub(super) struct Condition {
    pub(super) name: &'static str,
    pub(super) class: Class,
    pub(super) load: Load,
}

impl Condition {
    pub(super) fn drive(&self) -> &'static str {
        self.name.split_once('.').map_or(self.name, |(drive, _)| drive)
    }
}

const NO_HOST: &[(&str, &str)] = &[];
/// Linux since 5.0 puts mq-deadline in front of a disk with one queue.
const DEADLINE: &[(&str, &str)] = &[("queue.elevator", "deadline")];
const CFQ: &[(&str, &str)] = &[("queue.elevator", "cfq")];

/// The measured runs took 60 s, from an idle drive on.
const MINUTE: Extent = Extent::Seconds { skip: 0, run: 60 };
/// Enough random reads for a 99th percentile that is known to a few percent.
const READS: Extent = Extent::Count(20_000);
/// Random writes once the cache is full.
const FULL_CACHE: Extent = Extent::Seconds { skip: 60, run: 60 };
/// A stream of small requests, longer than the cache holds.
const STREAM: Extent = Extent::Count(300_000);

const fn job(name: &'static str, class: Class, keys: &'static str, extent: Extent) -> Condition {
    behind(name, class, keys, extent, NO_HOST)
}

const fn behind(
    name: &'static str,
    class: Class,
    keys: &'static str,
    extent: Extent,
    host: &'static [(&'static str, &'static str)],
) -> Condition {
    Condition { name, class, load: Load::Job { keys, extent, host } }
}

const fn other(name: &'static str, class: Class, load: Load) -> Condition {
    Condition { name, class, load }
}

macro_rules! random {
    ($rw:literal, $bs:literal, $depth:literal) => {
        concat!("rw=rand", $rw, "\nbs=", $bs, "\niodepth=", $depth, "\nnorandommap\n")
    };
}

const READ_1: &str = random!("read", "4k", 1);
const READ_2: &str = random!("read", "4k", 2);
const READ_4: &str = random!("read", "4k", 4);
const READ_8: &str = random!("read", "4k", 8);
const READ_16: &str = random!("read", "4k", 16);
const READ_32: &str = random!("read", "4k", 32);
const WRITE_1: &str = random!("write", "4k", 1);
const WRITE_16: &str = random!("write", "4k", 16);
/// Without the depth.
const WRITES: &str = "rw=randwrite\nbs=4k\nnorandommap\n";
const LARGE_1: &str = random!("read", "128k", 1);
const LARGE_2: &str = random!("read", "128k", 2);
const LARGE_4: &str = random!("read", "128k", 4);
const LARGE_8: &str = random!("read", "128k", 8);
const LARGE_16: &str = random!("read", "128k", 16);
const LARGE_32: &str = random!("read", "128k", 32);

/// Every condition.
pub(super) const ALL: &[&[Condition]] = &[DESKTOP, RECENT, SHEETS, SHINGLED];

use Class::{DepthMany, DepthOne, Flushes, RandomWrites, SequentialLarge, SequentialSmall, Shingled};

/// Drives of 2003 to 2014.
const DESKTOP: &[Condition] = &[
    job("hd103uj.read_4k_qd1", DepthOne, READ_1, READS),
    job("hd103uj.read_4k_qd4", DepthMany, READ_4, READS),
    job("hd103uj.read_4k_qd16", DepthMany, READ_16, READS),
    job("hd103uj.write_4k_qd1", RandomWrites, WRITE_1, MINUTE),
    other("hd103uj.scan", SequentialLarge, Load::Scan),
    job("hts721010g9.read_4k_qd1", DepthOne, READ_1, READS),
    job("hts721010g9.read_4k_qd2", DepthMany, READ_2, READS),
    job("hts721010g9.read_4k_qd8", DepthMany, READ_8, READS),
    job("hts721010g9.read_4k_qd32", DepthMany, READ_32, READS),
    job("hts721010g9.write_4k_qd1", RandomWrites, WRITE_1, MINUTE),
    job("wd740gd.read_4k_qd1", DepthOne, READ_1, READS),
    behind("wd740gd.read_4k_qd8", DepthMany, READ_8, READS, DEADLINE),
    job("wd740gd.write_4k_qd1", RandomWrites, WRITE_1, MINUTE),
    other("hd502hj.scan", SequentialLarge, Load::Scan),
    job("hd502hj.read_1m_qd1", SequentialLarge, "rw=read\nbs=1m\niodepth=1\nsize=1g\n", Extent::Keys),
    job("hd502hj.read_128k_qd32", SequentialLarge, "rw=read\nbs=128k\niodepth=32\nsize=1g\n", Extent::Keys),
    other("wd7500bpvt.scan", SequentialLarge, Load::Scan),
    other("wd5000aacs.scan", SequentialLarge, Load::Scan),
    job(
        "st3500418as.read_4k_in_1g_qd1",
        DepthOne,
        "rw=randread\nbs=4k\niodepth=1\nsize=1g\nio_size=1t\nnorandommap\n",
        READS,
    ),
    job(
        "st3500418as.read_4k_in_1g_qd32",
        DepthMany,
        "rw=randread\nbs=4k\niodepth=32\nsize=1g\nio_size=1t\nnorandommap\n",
        READS,
    ),
    job(
        "st3500418as.write_4k_in_1g_qd1",
        RandomWrites,
        "rw=randwrite\nbs=4k\niodepth=1\nsize=1g\nio_size=1t\nnorandommap\n",
        MINUTE,
    ),
    job(
        "st3500418as.write_4k_in_1g_qd32",
        RandomWrites,
        "rw=randwrite\nbs=4k\niodepth=32\nsize=1g\nio_size=1t\nnorandommap\n",
        MINUTE,
    ),
    job("st3500418as.read_1m_qd1", SequentialLarge, "rw=read\nbs=1m\niodepth=1\nsize=1g\n", Extent::Keys),
    job(
        "st3500418as.read_128k_qd32",
        SequentialLarge,
        "rw=read\nbs=128k\niodepth=32\nsize=1g\n",
        Extent::Keys,
    ),
    behind(
        "mg04aca400n.read_512_32_threads",
        SequentialSmall,
        "rw=read\nbs=512\nioengine=psync\nnumjobs=32\nsize=2m\n",
        Extent::Keys,
        DEADLINE,
    ),
    job("samsung-hd103sj.read_4k_qd16", SequentialSmall, "rw=read\nbs=4k\niodepth=16\n", STREAM),
];

/// Drives from 2014 on whose files follow measurements, and those of the same classes.
const RECENT: &[Condition] = &[
    job("st2000dm006.read_4k_qd1", DepthOne, READ_1, READS),
    job("st2000dm006.read_4k_qd2", DepthMany, READ_2, READS),
    job("st2000dm006.read_4k_qd4", DepthMany, READ_4, READS),
    job("st2000dm006.read_4k_qd8", DepthMany, READ_8, READS),
    job("st2000dm006.read_4k_qd16", DepthMany, READ_16, READS),
    job("st2000dm006.read_4k_qd32", DepthMany, READ_32, READS),
    job("st2000dm006.write_4k_qd1", RandomWrites, WRITE_1, Extent::Seconds { skip: 0, run: 30 }),
    other("st2000dm006.flush_after_8", Flushes, Load::Flush { writes: 8 }),
    other("st2000dm006.flush_after_64", Flushes, Load::Flush { writes: 64 }),
    other("ultrastar-7k8.flush_after_1", Flushes, Load::Flush { writes: 1 }),
    other("ultrastar-7k6000.synced_off_over_on", Flushes, Load::SyncedOffOverOn),
    other(
        "ultrastar-hc570.read_128k_qd2_over_qd1",
        DepthMany,
        Load::Growth { above: LARGE_2, below: LARGE_1 },
    ),
    other(
        "ultrastar-hc570.read_128k_qd32_over_qd1",
        DepthMany,
        Load::Growth { above: LARGE_32, below: LARGE_1 },
    ),
    job("ultrastar-hc570.read_128k_qd4", DepthMany, LARGE_4, READS),
    job("ultrastar-hc570.read_128k_qd8", DepthMany, LARGE_8, READS),
    job("ultrastar-hc570.read_128k_qd16", DepthMany, LARGE_16, READS),
    job("ultrastar-hc570.read_128k_qd32", DepthMany, LARGE_32, READS),
    other("ultrastar-hc570.read_128k_limits", DepthMany, Load::DurationLimits),
];

/// Figures of sheets and tests of drives of 2014 to 2020.
const SHEETS: &[Condition] = &[
    job("exos-x16.read_4k_qd16", DepthMany, READ_16, READS),
    job("exos-x16.write_4k_qd16_off", RandomWrites, WRITE_16, MINUTE),
    job("exos-x18.read_4k_qd16", DepthMany, READ_16, READS),
    job("exos-x18.write_4k_qd16_off", RandomWrites, WRITE_16, MINUTE),
    job("exos-2x14.read_4k_qd16", DepthMany, READ_16, READS),
    job("exos-2x14.write_4k_qd16_off", RandomWrites, WRITE_16, MINUTE),
    other("ultrastar-he8.write_4k", RandomWrites, OVER_DEPTHS),
    other("ultrastar-he10.write_4k", RandomWrites, OVER_DEPTHS),
    other("st8000nm0055.write_4k", RandomWrites, OVER_DEPTHS),
    other("st10000nm0016.write_4k", RandomWrites, OVER_DEPTHS),
];

const OVER_DEPTHS: Load = Load::MeanOverDepths { keys: WRITES, extent: FULL_CACHE, host: CFQ };

/// Shingled disks.
const SHINGLED: &[Condition] = &[
    other("seagate-archive-8tb.records_1m", Shingled, Load::Records { mib: 1 }),
    other("seagate-archive-8tb.records_8m", Shingled, Load::Records { mib: 8 }),
    other("seagate-archive-8tb.records_32m", Shingled, Load::Records { mib: 32 }),
    other("seagate-archive-8tb.paced_1m", Shingled, Load::PacedRecords),
    job(
        "seagate-archive-8tb.write_1m",
        SequentialLarge,
        "rw=write\nbs=1m\niodepth=4\nend_fsync=1\n",
        Extent::Count(40_000),
    ),
    other("ultrastar-hc620.synced_256k", Shingled, Load::OrderedRecords),
    job("ultrastar-hc620.write_4k_qd1", SequentialSmall, "rw=write\nbs=4k\niodepth=1\noffset=131g\n", STREAM),
    job(
        "ultrastar-hc620.write_4k_qd16",
        SequentialSmall,
        "rw=write\nbs=4k\niodepth=16\noffset=131g\n",
        STREAM,
    ),
    job(
        "ultrastar-hc620.write_1m_qd1",
        SequentialLarge,
        "rw=write\nbs=1m\niodepth=1\noffset=131g\nend_fsync=1\n",
        Extent::Count(8_000),
    ),
    job(
        "ultrastar-hc620.write_1m_qd16",
        SequentialLarge,
        "rw=write\nbs=1m\niodepth=16\noffset=131g\nend_fsync=1\n",
        Extent::Count(8_000),
    ),
];
