//! The desk's benchmarks: what PIO, DMA and SCSI cost a host, by Bonnie, hdparm and IOzone on an ext2.
//!
//! Modelled: the machine of the study with either disk, the page cache and elevator of Linux 2.2, ext2, and the processor. Not modelled:
//! the place of the study's partition (the whole disk is used), and the time by which its clock attributes interrupts to programs.
//! *Source:* R. S. Gray, "A study of disk performance optimization" (thesis, 2000), chapters 2, 3 and 5.

mod hosts;
mod prints;

use crate::judge::Measured;
use crate::study::{Findings, Setting, Study, StudyError};
use headstack::PhaseResult;
use headstack::report::{Section, Table};
use hosts::{BenchmarkLoad, StudyHost};

pub(crate) const STUDY: Study = Study {
    id: "desk",
    title: "The desk's benchmarks: PIO, DMA and SCSI",
    summary: "Rates and processor shares of Bonnie, hdparm and IOzone on an ext2 under PIO, DMA and SCSI.",
    expect: include_str!("../../studies/desk/expect.tsv"),
    run,
};

/// Most processes of IOzone.
const PROCESSES: u32 = 8;

fn run(setting: &Setting<'_>) -> Result<Findings, StudyError> {
    let mut found = prints::findings();
    let parts = [bonnie(setting)?, hdparm(setting)?, iozone(setting)?];
    found = Findings::join(std::iter::once(found).chain(parts).collect::<Vec<_>>());
    Ok(found)
}

fn show(table: &mut Table, machine: StudyHost, variant: &str, phase: &PhaseResult) {
    let share = 100.0 * phase.processor_share().unwrap_or(0.0);
    let cells = [phase.kib_s(), phase.operations_per_s(), share].map(|value| format!("{value:.4}"));
    table.row([machine.name().to_string(), variant.to_string(), phase.name.clone()].into_iter().chain(cells));
}

fn phase_table(title: &str, variant: &str) -> Table {
    Table::new(title, ["machine", variant, "phase", "KiB/s", "operations/s", "processor %"]).with_words(3)
}

fn phase<'a>(phases: &'a [PhaseResult], name: &str) -> &'a PhaseResult {
    phases.iter().find(|phase| phase.name == name).expect("the benchmark has the phase")
}

/// Phases of Bonnie that the study prints, with the keys of their rows.
const PHASES: [&str; 4] = ["char-write", "block-write", "block-read", "seeks"];

fn bonnie(setting: &Setting<'_>) -> Result<Findings, StudyError> {
    let loads = [BenchmarkLoad::Bonnie, BenchmarkLoad::BonnieByThesis, BenchmarkLoad::BonnieBlocks4K];
    let cases: Vec<_> =
        StudyHost::ALL.into_iter().flat_map(|machine| loads.map(|load| (machine, load))).collect();
    let runs = setting.map(&cases, |(machine, load)| machine.run(*load, setting.length))?;
    let mut table = phase_table("Bonnie", "seeks, blocks");
    for ((machine, load), phases) in cases.iter().zip(&runs) {
        phases.iter().for_each(|phase| show(&mut table, *machine, load.variant(), phase));
    }
    let mut found = Findings::default();
    let judged: Vec<_> = StudyHost::ALL.into_iter().zip(runs.iter().step_by(loads.len())).collect();
    for (machine, phases) in &judged {
        for name in PHASES {
            let phase = phase(phases, name);
            let rate = if name == "seeks" { phase.operations_per_s() } else { phase.kib_s() };
            let share = 100.0 * phase.processor_share().unwrap_or(0.0);
            found.measured.push(Measured::new(format!("bonnie.{}.{name}.rate", machine.name()), rate));
            found.measured.push(Measured::new(format!("bonnie.{}.{name}.cpu", machine.name()), share));
        }
    }
    let rate = |machine: usize, name| phase(judged[machine].1, name).kib_s();
    let share = |machine: usize, name| phase(judged[machine].1, name).processor_share().unwrap_or(0.0);
    found.measured.extend([
        Measured::new("bonnie.block-write.dma-over-pio", rate(1, "block-write") / rate(0, "block-write")),
        Measured::new(
            "bonnie.block-write.cpu.pio-over-dma",
            share(0, "block-write") / share(1, "block-write"),
        ),
        Measured::new("bonnie.block-read.dma-over-pio", rate(1, "block-read") / rate(0, "block-read")),
        Measured::new("bonnie.char-write.cpu.dma-over-pio", share(1, "char-write") / share(0, "char-write")),
        Measured::new("bonnie.block-write.scsi-over-dma", rate(2, "block-write") / rate(1, "block-write")),
        Measured::new("bonnie.block-read.scsi-over-dma", rate(2, "block-read") / rate(1, "block-read")),
    ]);
    found.sections.push(Section::new("Bonnie").with_table(table));
    Ok(found)
}

fn hdparm(setting: &Setting<'_>) -> Result<Findings, StudyError> {
    let runs = setting.map(&StudyHost::ALL, |machine| machine.run(BenchmarkLoad::Hdparm, setting.length))?;
    let mut table = phase_table("hdparm -t", "load");
    let mut found = Findings::default();
    for (machine, phases) in StudyHost::ALL.into_iter().zip(&runs) {
        let phase = phase(phases, "device-read");
        show(&mut table, machine, "64 MiB", phase);
        let name = format!("hdparm.{}", machine.name());
        found.measured.push(Measured::new(format!("{name}.rate"), phase.kib_s() / 1024.0));
        found.measured.push(Measured::new(format!("{name}.seconds"), phase.seconds()));
    }
    let seconds: Vec<f64> = runs.iter().map(|phases| phase(phases, "device-read").seconds()).collect();
    found.measured.push(Measured::new("hdparm.pio-over-dma.seconds", seconds[0] / seconds[1]));
    found.sections.push(Section::new("hdparm").with_table(table));
    Ok(found)
}

fn iozone(setting: &Setting<'_>) -> Result<Findings, StudyError> {
    let counts: Vec<u32> = (1..=PROCESSES).collect();
    let cases: Vec<_> = StudyHost::ALL
        .into_iter()
        .flat_map(|machine| counts.iter().map(move |count| (machine, BenchmarkLoad::Iozone(*count))))
        .collect();
    let runs = setting.map(&cases, |(machine, load)| machine.run(*load, setting.length))?;
    let mut table = phase_table("IOzone, 1 GiB in all", "processes");
    let mut number = counts.iter().cycle();
    for ((machine, _), phases) in cases.iter().zip(&runs) {
        let variant = number.next().map(u32::to_string).unwrap_or_default();
        phases.iter().for_each(|phase| show(&mut table, *machine, &variant, phase));
    }
    let rates = |machine: usize, name: &str| -> Vec<f64> {
        let of_machine = runs.chunks(counts.len()).nth(machine).unwrap_or_default();
        of_machine.iter().map(|phases| phase(phases, name).kib_s()).collect()
    };
    let spread = |rates: &[f64]| {
        let (least, most) =
            rates.iter().fold((f64::MAX, 0.0f64), |(a, b), rate| (a.min(*rate), b.max(*rate)));
        most / least
    };
    let mean = |rates: &[f64]| rates.iter().sum::<f64>() / rates.len() as f64;
    let last = counts.len() - 1;
    let [pio_write, pio_read] = ["write", "read"].map(|name| rates(0, name));
    let [dma_write, dma_read] = ["write", "read"].map(|name| rates(1, name));
    let scsi_write = rates(2, "write");
    let mut found = Findings::default();
    found.measured.extend([
        Measured::new("iozone.pio.write.spread", spread(&pio_write)),
        Measured::new("iozone.pio.read.spread", spread(&pio_read)),
        Measured::new("iozone.pio.each", (pio_write[last] + pio_read[last]) / 2.0 / f64::from(PROCESSES)),
        Measured::new("iozone.pio.write-over-read", mean(&pio_write) / mean(&pio_read)),
        Measured::new("iozone.dma.read-over-write", mean(&dma_read) / mean(&dma_write)),
        Measured::new("iozone.scsi.write.8-over-1", scsi_write[last] / scsi_write[0]),
    ]);
    found.sections.push(Section::new("IOzone").with_table(table));
    Ok(found)
}
