//! The effect of one slow disk of five on a RAID-5.
//!
//! Modelled: five `exos-x18` of the shipped rig `raid5`, one of which is slow all the time in one of several ways; reads of 64 KiB at random,
//! each of one disk. Not modelled: an array that reads around a slow disk.
//! *Source:* each row of `studies/today/expect.tsv` names its own.

use super::SEED;
use crate::judge::Measured;
use crate::runs::Responses;
use crate::study::{Setting, StudyError};
use headstack::report::{Section, Table};
use headstack::{NoFiles, Simulation, Workload};
use headstack_model::drives;
use headstack_sim::rig::Rig;

/// A way to be slow: its name in the figures, and the keys that cause it.
const WAYS: [(&str, &str); 7] = [
    ("none", ""),
    ("twice as slow", "mechanics.slow_periods = [{ factor = 2 }]"),
    ("three times as slow under one of 18 heads", "mechanics.slow_periods = [{ head = 0, factor = 3 }]"),
    ("2 % of the accesses lose 800 ms", "mechanics.slow_periods = [{ share = 0.02, delay_ms = 800 }]"),
    (
        "10 % of the accesses lose 40 ms in the mean",
        "mechanics.slow_periods = [{ share = 0.1, delay_mean_ms = 40 }]",
    ),
    ("stalls of 2 s, a minute apart", "mechanics.stalls = [{ mean_gap_s = 60, mean_stall_ms = 2000 }]"),
    ("vibration", "mechanics.slow_patterns = [{ name = \"vibration\" }]"),
];

const DEPTHS: [u32; 2] = [1, 16];

const COUNT: u64 = 40_000;

/// Four sound disks, and one that these keys make slow.
fn rig(keys: &str) -> Result<Rig, StudyError> {
    let text = format!(
        "title = \"RAID-5 with a slow disk\"\n[[drive]]\npreset = \"exos-x18\"\ncount = 4\nvolume = \"sound\"\n\
         [[drive]]\npreset = \"exos-x18\"\nvolume = \"slow\"\n{keys}\n\
         [array]\nname = \"raid5\"\norganisation = \"raid-5\"\ndrives = [\"sound\", \"slow\"]\n\
         stripe_unit_sectors = 128\nrotation = \"left-symmetric\"\n"
    );
    Ok(Rig::parse(&text, "slow.toml", &mut |name| drives::load(name))?)
}

fn run(keys: &str, depth: u32, count: u64) -> Result<Responses, StudyError> {
    let job = format!("[reads]\nrw=randread\nbs=64k\nioengine=libaio\niodepth={depth}\nnumber_ios={count}\n");
    let workload = Workload::fio_job(&job, "job", &NoFiles)?;
    let simulation = Simulation::new(&rig(keys)?, workload, SEED)?;
    Ok(Responses::from_results(simulation.keep_response_times().run()?))
}

/// The rows, and a section with rates and slow responses by way and queue depth.
pub(super) fn measure(setting: &Setting<'_>) -> Result<(Vec<Measured>, Section), StudyError> {
    let count = setting.length.pick(COUNT, COUNT / 10);
    let runs: Vec<_> = WAYS.iter().flat_map(|way| DEPTHS.map(|depth| (way.1, depth))).collect();
    let found = setting.map(&runs, |(keys, depth)| run(keys, *depth, count))?;
    let of = |way: usize, depth: usize| &found[way * DEPTHS.len() + depth];
    let rate = |way: usize, depth: usize| of(way, depth).rate() / of(0, depth).rate();
    let measured = vec![
        Measured::new("fail-slow.raid5_twice_as_slow_qd1_rate", rate(1, 0)),
        Measured::new("fail-slow.raid5_twice_as_slow_qd16_rate", rate(1, 1)),
    ];
    let mut table = Table::new(
        "Random reads of 64 KiB from a RAID-5 of five disks, one of them slow",
        [
            "how the disk is slow",
            "outstanding",
            "IOPS",
            "share of the sound rate",
            "p50 ms",
            "p99 ms",
            "p99.9 ms",
        ]
        .map(String::from),
    );
    for (way, (name, _)) in WAYS.iter().enumerate() {
        for (index, depth) in DEPTHS.iter().enumerate() {
            let responses = of(way, index);
            let times = [0.5, 0.99, 0.999].map(|share| responses.quantile_ms(share));
            let figures = [f64::from(*depth), responses.rate(), rate(way, index)];
            table.named_row([(*name).to_string()], figures.into_iter().chain(times));
        }
    }
    let section = Section::new("What one slow disk does to a RAID-5")
        .with_text(
            "With one request outstanding a fifth of the reads is slow. With sixteen, all of them wait for the slow disk in the end, and \
             the other four are idle for much of the time.",
        )
        .with_table(table);
    Ok((measured, section))
}
