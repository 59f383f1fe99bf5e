//! A drive as the cache of another: blocks have the same LBNs on both.
//!
//! A read whose blocks are all valid on the cache goes there; any other goes to the drive itself, and its data are then written to
//! the cache. A write goes to the cache and completes there. With write-through it then also goes to the drive. With write-back
//! its blocks are dirty, and go to the drive, run by run, after the controller has been idle for a while.
//! Valid and dirty are recorded per block.
//!
//! *Source:* DiskSim's cache device, as described in its source.

use super::spec::{ControllerCacheSpec, ControllerWrites};
use super::{Cache, Controller, Purpose};
use crate::device::Completion;
use crate::layer::Out;
use headstack_model::{Instant, Lbn, Nanos, Op, Request};
use std::ops::Range;

/// The most blocks of a transfer between the two drives.
const RUN_SECTORS: u64 = 1 << 20;

#[derive(Debug, Default)]
struct Blocks {
    words: Vec<u64>,
    count: u64,
    /// No block below this word is in it.
    first: usize,
}

impl Blocks {
    fn has(&self, lbn: Lbn) -> bool {
        self.words.get((lbn.0 / 64) as usize).is_some_and(|word| word >> (lbn.0 % 64) & 1 == 1)
    }

    fn has_all(&self, run: Range<Lbn>) -> bool {
        (run.start.0..run.end.0).all(|lbn| self.has(Lbn(lbn)))
    }

    fn add(&mut self, run: Range<Lbn>) {
        self.words.resize(self.words.len().max(run.end.0.div_ceil(64) as usize), 0);
        for lbn in run.start.0..run.end.0 {
            let (word, bit) = ((lbn / 64) as usize, 1 << (lbn % 64));
            self.count += u64::from(self.words[word] & bit == 0);
            self.words[word] |= bit;
            self.first = self.first.min(word);
        }
    }

    fn remove(&mut self, run: Range<Lbn>) {
        for lbn in run.start.0..run.end.0 {
            let (word, bit) = ((lbn / 64) as usize, 1 << (lbn % 64));
            if let Some(word) = self.words.get_mut(word) {
                self.count -= u64::from(*word & bit != 0);
                *word &= !bit;
            }
        }
    }

    /// The first run of blocks, [`RUN_SECTORS`] at most.
    fn first_run(&mut self) -> Option<Range<Lbn>> {
        let word = (self.first..self.words.len()).find(|word| self.words[*word] != 0)?;
        self.first = word;
        let start = word as u64 * 64 + u64::from(self.words[word].trailing_zeros());
        let end = (start..start + RUN_SECTORS).find(|lbn| !self.has(Lbn(*lbn)));
        Some(Lbn(start)..Lbn(end.unwrap_or(start + RUN_SECTORS)))
    }
}

/// The drive that is a cache, the one that it caches, and its contents.
#[derive(Debug)]
pub(super) struct CacheDrive {
    shelf: u32,
    cached: u32,
    /// Blocks from this one on are not kept.
    end: Lbn,
    write_back: bool,
    idle: Option<Nanos>,
    valid: Blocks,
    dirty: Blocks,
    returning: bool,
    /// Since when the cached drive has had nothing to do.
    quiet_since: Instant,
    flushes: Vec<u32>,
}

impl CacheDrive {
    pub(super) fn new(spec: &ControllerCacheSpec, shelf: u32, cached: u32, drives: &[u64]) -> CacheDrive {
        CacheDrive {
            shelf,
            cached,
            end: Lbn(spec.sectors.min(drives[shelf as usize]).min(drives[cached as usize])),
            write_back: spec.writes == ControllerWrites::WriteBack,
            idle: spec.flush_idle_ms.map(Nanos::from_ms),
            valid: Blocks::default(),
            dirty: Blocks::default(),
            returning: false,
            quiet_since: Instant::ZERO,
            flushes: Vec::new(),
        }
    }

    pub(super) fn dirty_sectors(&self) -> u64 {
        self.dirty.count
    }

    pub(super) fn note_use(&mut self, now: Instant, drive: u32) {
        if drive == self.cached {
            self.quiet_since = now;
        }
    }

    /// When dirty blocks go to their drive, if nothing else happens before.
    pub(super) fn next_event(&self) -> Instant {
        match self.idle {
            Some(idle) if self.dirty.count > 0 && !self.returning => self.quiet_since.saturating_add(idle),
            _ => Instant::MAX,
        }
    }

    fn keeps(&self, request: &Request) -> bool {
        request.sectors > 0 && request.end() <= self.end
    }
}

impl Controller {
    fn shelf(&mut self) -> &mut CacheDrive {
        match &mut self.cache {
            Cache::Drive(shelf) => shelf,
            _ => unreachable!("only a controller with such a drive uses it"),
        }
    }

    pub(super) fn begin_on_drive(&mut self, now: Instant, job: u32, out: &mut Out<'_>) {
        let (drive, request) = self.command(job);
        let shelf = self.shelf();
        if drive != shelf.cached {
            return self.pass(job, out);
        }
        let (run, cache, keeps) = (request.lbn..request.end(), shelf.shelf, shelf.keeps(&request));
        match request.op {
            Op::Flush => {
                shelf.flushes.push(job);
                self.flush_on(now, out);
            }
            Op::Read if keeps && shelf.valid.has_all(run) => {
                self.activity.read_hits += 1;
                self.transfer(Purpose::Pass { job }, cache, request, out);
            }
            Op::Read if keeps => {
                self.transfer(Purpose::Populate { job }, drive, request, out);
            }
            Op::Write if keeps && !request.fua => {
                self.transfer(Purpose::Shelve { job }, cache, request, out);
            }
            _ => {
                if request.op == Op::Write {
                    let end = request.end().min(shelf.end);
                    let run = request.lbn.min(end)..end;
                    shelf.valid.remove(run.clone());
                    shelf.dirty.remove(run);
                }
                self.pass(job, out);
            }
        }
    }

    /// Handles the data of a read that came from its drive: they go to the host and to the cache.
    pub(super) fn populate(&mut self, now: Instant, job: u32, how: &Completion, out: &mut Out<'_>) {
        let (_, request) = self.command(job);
        let cache = self.shelf().shelf;
        self.activity.filled_sectors += u64::from(request.sectors);
        self.transfer(Purpose::Keep, cache, Request::write(request.lbn, request.sectors), out);
        self.account(now, job, how);
        self.end(now, job);
    }

    pub(super) fn kept(&mut self, request: &Request) {
        self.shelf().valid.add(request.lbn..request.end());
    }

    pub(super) fn shelved(&mut self, now: Instant, job: u32, how: &Completion, out: &mut Out<'_>) {
        let (_, request) = self.command(job);
        let shelf = self.shelf();
        shelf.valid.add(request.lbn..request.end());
        shelf.dirty.add(request.lbn..request.end());
        if !shelf.write_back {
            let cached = shelf.cached;
            self.activity.destaged_sectors += u64::from(request.sectors);
            self.transfer(Purpose::Return, cached, request, out);
        }
        self.account(now, job, how);
        self.end(now, job);
    }

    /// Writes dirty blocks to their drive if that has been idle for long enough.
    pub(super) fn return_when_idle(&mut self, now: Instant, out: &mut Out<'_>) {
        let due = self.shelf().next_event() <= now;
        if due && !self.commands.has_transfers() {
            self.fetch(out);
        } else if due {
            self.shelf().quiet_since = now;
        }
    }

    fn fetch(&mut self, out: &mut Out<'_>) {
        let shelf = self.shelf();
        let Some(run) = shelf.dirty.first_run() else { return };
        shelf.returning = true;
        let cache = shelf.shelf;
        self.transfer(Purpose::Fetch, cache, Request::read(run.start, (run.end - run.start) as u32), out);
    }

    pub(super) fn fetched(&mut self, request: &Request, out: &mut Out<'_>) {
        let cached = self.shelf().cached;
        self.activity.destaged_sectors += u64::from(request.sectors);
        self.transfer(Purpose::Return, cached, Request::write(request.lbn, request.sectors), out);
    }

    /// Handles a dirty run that reached its drive: continues with the next one while the controller is idle.
    pub(super) fn returned(&mut self, now: Instant, request: &Request, out: &mut Out<'_>) {
        let (is_quiet, shelf) = (!self.commands.has_transfers(), self.shelf());
        shelf.dirty.remove(request.lbn..request.end());
        shelf.returning = false;
        shelf.quiet_since = now;
        if !shelf.flushes.is_empty() {
            self.flush_on(now, out);
        } else if is_quiet && shelf.idle.is_some() {
            self.fetch(out);
        }
    }

    /// Continues flushes: writes dirty blocks to their drive, then flushes the drive.
    fn flush_on(&mut self, now: Instant, out: &mut Out<'_>) {
        let shelf = self.shelf();
        if shelf.dirty.count > 0 {
            if !shelf.returning && shelf.write_back {
                self.fetch(out);
            }
            return;
        }
        while let Some(job) = self.shelf().flushes.pop() {
            self.waited_for_room(now, job);
            self.pass(job, out);
        }
    }
}
