//! Ageing: the state of a file system after files were created and deleted for a long time.
//!
//! Files are created at random until a share of the disk is in use. Then, repeatedly, a randomly drawn file is deleted and others are
//! created. Some large files are written in pieces, several of them in turn. Nothing is transferred: only the places of blocks matter.
//!
//! *Source:* the method (a load that makes and removes files over time at a given utilisation) is that of K. Smith and M. Seltzer, "File
//! system aging" (SIGMETRICS 1997); sizes are an assumption.

use super::program::{Call, Handle};
use super::session::Session;
use super::{BLOCK_BYTES, GROUP_BLOCKS, GROUP_HEAD_BLOCKS};
use headstack_workload::generator;
use rand::RngExt;
use rand_pcg::Pcg64Mcg;

/// How a file system is aged.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct AgeingPlan {
    /// Share of the blocks after the heads of groups that is in use in the end, excluded blocks counted as blocks.
    pub utilisation: f64,
    /// Blocks written after the disk was filled, as a multiple of those in use.
    pub turnovers: f64,
    /// Share of the large files that grow in pieces, in turn with others.
    pub growing_share: f64,
    /// Handle of the first of its files.
    pub first_handle: Handle,
    /// Seed.
    pub seed: u64,
}

/// Probability that a file is large.
const LARGE: f64 = 0.2;

/// Bytes of small and of large files.
const SMALL_BYTES: (u64, u64) = (1 << 10, 64 << 10);
const LARGE_BYTES: (u64, u64) = (256 << 10, 4 << 20);

/// Number of files that grow at the same time, and the bytes by which each grows in its turn.
const GROWING: usize = 4;
const PIECE_BYTES: u64 = 64 << 10;

/// A file that has not reached its final length.
struct Growing {
    handle: Handle,
    left: u64,
}

/// Directories of the files, spread over the groups. *Source:* assumption.
const DIRECTORIES: u32 = 32;

struct Ager {
    plan: AgeingPlan,
    random: Pcg64Mcg,
    files: Vec<Handle>,
    growing: Vec<Growing>,
    next: Handle,
    /// Blocks written after the file system was filled for the first time.
    written: u64,
}

/// Ages a file system. The files that are there before stay and count as blocks in use.
pub fn age<P: Iterator<Item = Call>>(session: &mut Session<P>, plan: AgeingPlan) {
    let raw = session.layout.groups() * (GROUP_BLOCKS - GROUP_HEAD_BLOCKS);
    let unused = f64::from(raw) * (1.0 - plan.utilisation) - f64::from(raw - session.layout.blocks());
    let least_free = unused.max(0.0) as u32;
    let in_use = f64::from(raw) * plan.utilisation;
    let mut ager = Ager {
        plan,
        random: generator(plan.seed),
        files: Vec::new(),
        growing: Vec::new(),
        next: plan.first_handle,
        written: 0,
    };
    ager.fill(session, least_free);
    ager.written = 0;
    while (ager.written as f64) < plan.turnovers * in_use && !session.is_full() {
        ager.remove(session);
        ager.fill(session, least_free);
    }
}

/// Adds files to a directory that are written in turn, a piece of 64 KB of each after the other. Nothing of them is in memory.
pub fn add_files_grown_in_turn<P: Iterator<Item = Call>>(
    session: &mut Session<P>,
    files: &[(Handle, u64)],
    directory: u32,
) {
    for (handle, _) in files {
        session.add(*handle, directory);
    }
    let longest = files.iter().map(|(_, bytes)| *bytes).max().unwrap_or_default();
    for from in (0..longest).step_by(PIECE_BYTES as usize) {
        for (handle, bytes) in files {
            session.lengthen(*handle, bytes.saturating_sub(from).min(PIECE_BYTES));
        }
    }
}

impl Ager {
    /// Creates files until at most `least_free` blocks are free.
    fn fill<P: Iterator<Item = Call>>(&mut self, session: &mut Session<P>, least_free: u32) {
        while session.layout.free_blocks() > least_free && !session.is_full() {
            self.make(session);
        }
    }

    fn make<P: Iterator<Item = Call>>(&mut self, session: &mut Session<P>) {
        let is_large = self.random.random_bool(LARGE);
        let (least, most) = if is_large { LARGE_BYTES } else { SMALL_BYTES };
        let bytes = self.random.random_range(least..=most);
        let handle = self.next;
        self.next += 1;
        session.add(handle, handle % DIRECTORIES);
        if is_large && self.random.random_bool(self.plan.growing_share) {
            self.growing.push(Growing { handle, left: bytes });
        } else {
            self.lengthen(session, handle, bytes);
            self.files.push(handle);
        }
        if self.growing.len() >= GROWING {
            self.grow(session);
        }
    }

    /// Writes a piece of each growing file.
    fn grow<P: Iterator<Item = Call>>(&mut self, session: &mut Session<P>) {
        for mut growing in std::mem::take(&mut self.growing) {
            let piece = growing.left.min(PIECE_BYTES);
            growing.left -= piece;
            self.lengthen(session, growing.handle, piece);
            if growing.left > 0 {
                self.growing.push(growing);
            } else {
                self.files.push(growing.handle);
            }
        }
    }

    fn lengthen<P: Iterator<Item = Call>>(&mut self, session: &mut Session<P>, handle: Handle, bytes: u64) {
        self.written += bytes.div_ceil(BLOCK_BYTES);
        session.lengthen(handle, bytes);
    }

    /// Deletes a randomly drawn file.
    fn remove<P: Iterator<Item = Call>>(&mut self, session: &mut Session<P>) {
        if self.files.is_empty() {
            return;
        }
        let index = self.random.random_range(0..self.files.len());
        session.remove(self.files.swap_remove(index));
    }
}
