//! Power cuts of the emulated disk, with bytes: what was flushed or forced is in the store afterwards.

#[path = "../../sim/tests/laws/history.rs"]
mod history;

use headstack_host::Operation;
use headstack_host::disk::{Emulator, EmulatorFaults, Store, Volume};
use headstack_model::{Instant, drives};
use headstack_sim::{RearrangeLayer, Rig};
use headstack_workload::VolumeInfo;
use history::{DiskOperation, History, Loss};
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;

/// Drives of every kind: write-through, immediate reporting, write-back with 512-byte and with physical 4 KiB sectors.
const DRIVES: [&str; 5] = ["atlas-10k", "hp-c2247a", "st2000dm006", "exos-x16", "toshiba-x300"];

/// Clients that ask for one thing at a time.
const CLIENTS: usize = 6;

/// A disk under a load of writes, flushes and forced writes to few blocks, judged by its bytes.
struct Run {
    emulator: Emulator,
    random: Pcg64Mcg,
    history: History,
    block: u64,
    now: Instant,
}

impl Run {
    /// Blocks in use: a hot run, and the same number spread over the disk.
    const BLOCKS: u64 = 96;

    fn rig(seed: u64) -> Rig {
        let name = DRIVES[(seed % DRIVES.len() as u64) as usize];
        Rig::from_drive(drives::load(name).expect("the drive is shipped"))
    }

    /// A drive whose hot blocks are copied each second, by several copies at once.
    fn rearranged_rig(seed: u64) -> Rig {
        let mut rig = Run::rig(seed);
        for (key, value) in [
            // Room for four copies, fewer than there are blocks, so that copies come and go.
            ("runs", "[[100000, 32]]"),
            ("block_bytes", "4096"),
            ("period_s", "1"),
            ("when", "at-once"),
            ("least_references", "1"),
            ("parallel_copies", "3"),
        ] {
            rig.set(&format!("rearrange.{key}"), value).expect("it is a good value");
        }
        rig
    }

    fn new(rig: &Rig, seed: u64, faults: EmulatorFaults) -> Run {
        let volume = |info: VolumeInfo| {
            let store = Store::memory(info.bytes()).expect("unused memory is free");
            Volume::new(info, store)
        };
        let volumes: Vec<_> = rig.volumes().into_iter().map(volume).collect();
        let block = u64::from(volumes[0].info().sector_bytes);
        let engine = rig.build(seed).expect("the drive is good");
        let emulator = Emulator::new(engine, volumes, faults).expect("a drive tells what is on its media");
        let random = Pcg64Mcg::seed_from_u64(seed);
        Run { emulator, random, history: History::default(), block, now: Instant::ZERO }
    }

    /// Asks for something; its number in the history is its ticket, and what a write fills its blocks with.
    fn ask(&mut self) {
        if self.random.random_bool(0.15) {
            let ticket = self.history.len() as u64;
            self.history.submit(DiskOperation::Flush);
            return self.emulator.submit(self.now, 0, Operation::Flush, ticket);
        }
        let first = self.random.random_range(0..Run::BLOCKS);
        let count = self.random.random_range(1..=16).min(Run::BLOCKS - first);
        let forced = self.random.random_bool(0.1);
        let number = self.history.submit(DiskOperation::Write { blocks: first..first + count, forced });
        let data = (number as u64 + 1).to_le_bytes().repeat((count * self.block / 8) as usize);
        let operation = Operation::Write { offset: first * self.block, data, fua: forced };
        self.emulator.submit(self.now, 0, operation, number as u64);
    }

    /// Steps the disk up to a time, with as many requests in flight as there are clients.
    fn until(&mut self, end: Instant) {
        loop {
            while let Some(answered) = self.emulator.poll_answer() {
                answered.result.expect("nothing is wrong with it");
                self.history.complete(answered.ticket as usize);
            }
            while self.emulator.outstanding() < CLIENTS {
                self.ask();
            }
            let next = self.emulator.poll_timeout().expect("requests are in flight");
            if next > end {
                return;
            }
            self.now = self.now.max(next);
            self.emulator.handle_timeout(self.now);
        }
    }

    /// The number of the write whose bytes a block holds on the media. A block of two writes is none that may be.
    fn holds(&self, block: u64) -> Option<usize> {
        let mut bytes = vec![0; self.block as usize];
        let volume = &self.emulator.volumes()[0];
        volume.read_media(block * self.block, &mut bytes).expect("it is inside");
        let mut words = bytes.chunks_exact(8).map(|word| u64::from_le_bytes(word.try_into().expect("eight")));
        let first = words.next().expect("a block has bytes");
        assert!(words.all(|word| word == first), "block {block} is torn within");
        (first as usize).checked_sub(1)
    }

    fn cut(seed: u64, faults: EmulatorFaults) -> Result<(), Loss> {
        Run::cut_of(Run::new(&Run::rig(seed), seed, faults), 600.0).1
    }

    /// Cuts the power within a time, and judges the bytes.
    fn cut_of(mut run: Run, latest_ms: f64) -> (Run, Result<(), Loss>) {
        let at = Instant::from_ms(run.random.random_range(1.0..latest_ms));
        run.until(at);
        run.emulator.cut_power(at);
        while run.emulator.poll_answer().is_some() {}
        let judged = run.history.judge(|block| run.holds(block));
        (run, judged)
    }
}

fn cut_many(seeds: u64) {
    for seed in 0..seeds {
        Run::cut(seed, EmulatorFaults::default()).unwrap_or_else(|loss| panic!("seed {seed}: {loss}"));
    }
}

#[test]
fn flushed_bytes_survive_300_power_cuts() {
    cut_many(300);
}

/// Cuts of a disk with copies; how many blocks were copied in and home.
fn cut_many_rearranged(seeds: u64) -> (u64, u64) {
    let (mut copied_in, mut written_home) = (0, 0);
    for seed in 0..seeds {
        let run = Run::new(&Run::rearranged_rig(seed), seed, EmulatorFaults::default());
        let (run, judged) = Run::cut_of(run, 4000.0);
        judged.unwrap_or_else(|loss| panic!("seed {seed}: {loss}"));
        let engine = run.emulator.engine().expect("it is a drive");
        let counters = engine.layer::<RearrangeLayer>(0).expect("it has a region").activity().view.counters;
        copied_in += counters.copied_in;
        written_home += counters.written_home;
    }
    (copied_in, written_home)
}

#[test]
fn flushed_bytes_survive_15_power_cuts_of_a_disk_with_copies() {
    let (copied_in, written_home) = cut_many_rearranged(15);
    assert!(copied_in > 20 && written_home > 3, "{copied_in} copied in, {written_home} written home");
}

#[test]
#[ignore = "takes a while: make cuts"]
fn flushed_bytes_survive_10_000_power_cuts_of_a_disk_with_copies() {
    cut_many_rearranged(10_000);
}

/// `make cuts`.
#[test]
#[ignore = "takes a while: make cuts"]
fn flushed_bytes_survive_10_000_power_cuts() {
    cut_many(10_000);
}

#[test]
fn lost_bytes_expose_a_disk_that_ignores_flush() {
    let faults = EmulatorFaults { ignore_flush: true, ..EmulatorFaults::default() };
    let caught = (0..100).filter(|seed| Run::cut(*seed, faults).is_err()).count();
    assert!(caught > 20, "caught {caught} times in 100");
}

#[test]
fn requested_power_cut_comes_at_its_time() {
    let at = Instant::from_ms(50.0);
    let mut run =
        Run::new(&Run::rig(2), 2, EmulatorFaults { power_cut: Some(at), ..EmulatorFaults::default() });
    run.ask();
    run.emulator.handle_timeout(Instant::from_ms(49.0));
    assert!(!run.emulator.is_dark() && run.emulator.poll_timeout() <= Some(at));
    // However late the call.
    run.emulator.handle_timeout(Instant::from_ms(80_000.0));
    assert!(run.emulator.is_dark() && run.emulator.outstanding() == 0);
    assert_eq!(run.emulator.poll_timeout(), None);
}
