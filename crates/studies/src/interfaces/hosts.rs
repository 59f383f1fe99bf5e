//! The study's machine with each of its three interfaces, and its loads.

use crate::study::{Length, StudyError};
use headstack::{PhaseResult, Rig, Simulation, Workload};
use headstack_model::drives;

/// Seed of the offsets to which Bonnie seeks.
const SEED: u64 = 1;

/// Megabytes of the page cache in the study's rigs, and the total bytes of the benchmark's files.
const MEMORY: &str = "memory_mb = 240";
const FILE_BYTES: u64 = 1 << 30;

/// The quick form has files of a sixteenth, and memory in proportion.
const QUICK: u64 = 16;

/// The form of the machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum StudyHost {
    Pio,
    Dma,
    Scsi,
}

/// What is run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum BenchmarkLoad {
    /// With the seeks of the program.
    Bonnie,
    /// With four processes of 4,000 seeks each, as the thesis says.
    BonnieByThesis,
    /// With the seeks of the program, on blocks of 4 KiB.
    BonnieBlocks4K,
    Hdparm,
    /// With this number of processes.
    Iozone(u32),
}

impl StudyHost {
    pub(super) const ALL: [StudyHost; 3] = [StudyHost::Pio, StudyHost::Dma, StudyHost::Scsi];

    /// The name in rows.
    pub(super) fn name(self) -> &'static str {
        match self {
            StudyHost::Pio => "pio",
            StudyHost::Dma => "dma",
            StudyHost::Scsi => "scsi",
        }
    }

    fn rig(self) -> (&'static str, &'static str) {
        match self {
            StudyHost::Pio => ("studies/desk/pio.toml", include_str!("../../studies/desk/pio.toml")),
            StudyHost::Dma => ("studies/desk/dma.toml", include_str!("../../studies/desk/dma.toml")),
            StudyHost::Scsi => ("studies/desk/scsi.toml", include_str!("../../studies/desk/scsi.toml")),
        }
    }

    /// Runs a load; returns its phases.
    ///
    /// *Errors:* the rig or the load is invalid.
    pub(super) fn run(self, load: BenchmarkLoad, length: Length) -> Result<Vec<PhaseResult>, StudyError> {
        let (origin, text) = self.rig();
        let memory = format!("memory_mb = {}", 240 / length.pick(1, QUICK));
        let rig = Rig::parse(&text.replace(MEMORY, &memory), origin, &mut |name| drives::load(name))?;
        let text = load.text(FILE_BYTES / length.pick(1, QUICK));
        Ok(Simulation::new(&rig, Workload::load_file(&text, "studies/desk")?, SEED)?.run()?.phases)
    }
}

impl BenchmarkLoad {
    /// What differs between the runs of a benchmark.
    pub(super) fn variant(self) -> &'static str {
        match self {
            BenchmarkLoad::Bonnie => "3 share 4,000, 1 KiB",
            BenchmarkLoad::BonnieByThesis => "4 of 4,000, 1 KiB",
            BenchmarkLoad::BonnieBlocks4K => "3 share 4,000, 4 KiB",
            BenchmarkLoad::Hdparm | BenchmarkLoad::Iozone(_) => "",
        }
    }

    /// The load file, with files of `bytes` bytes in all.
    fn text(self, bytes: u64) -> String {
        let bonnie = include_str!("../../studies/desk/bonnie.toml");
        let bonnie = bonnie.replace(&FILE_BYTES.to_string(), &bytes.to_string());
        match self {
            BenchmarkLoad::Bonnie => bonnie,
            BenchmarkLoad::BonnieByThesis => format!("{bonnie}children = 4\nseeks = 16000\n"),
            BenchmarkLoad::BonnieBlocks4K => format!("{bonnie}ext2 = {{ block_bytes = 4096 }}\n"),
            BenchmarkLoad::Hdparm => include_str!("../../studies/desk/hdparm.toml").to_string(),
            BenchmarkLoad::Iozone(processes) => {
                let text = include_str!("../../studies/desk/iozone.toml");
                let text = text.replace("processes = 1\n", &format!("processes = {processes}\n"));
                format!("{text}total_bytes = {bytes}\n")
            }
        }
    }
}
