//! The memory of a controller as a cache of its drives.
//!
//! A read takes its lines, fetches their missing sectors, and reads ahead if it continues a stream. A write takes its lines and
//! leaves its data there, dirty with write-back, or writes them to the drive before it completes. If every line is in use, the one
//! unused for longest is evicted, and first destaged if it is dirty; the command that needs it waits.
//!
//! A command reserves room for all its lines before it takes the first one, so that commands never wait for each other's lines. A
//! command for more than half of the memory bypasses it, and so does one with FUA.

use super::memory::{Lines, Room};
use super::spec::{ControllerCacheSpec, ControllerWrites};
use super::streams::Streams;
use super::{Cache, Controller, Holding, Purpose, Step};
use crate::device::{CacheUse, Completion};
use crate::layer::Out;
use crate::memory::{Destages, NONE};
use headstack_model::{Instant, Lbn, Nanos, Op, Request};
use std::collections::VecDeque;
use std::ops::Range;

#[derive(Debug)]
pub(super) struct MemoryCache {
    lines: Lines,
    /// Blocks of each drive.
    drives: Vec<u64>,
    write_back: bool,
    read_ahead: u64,
    /// Whether read-ahead takes room as the read's own data do.
    read_ahead_evicts: bool,
    cluster: u64,
    period: Option<Nanos>,
    idle: Option<Nanos>,
    last_tick: Instant,
    streams: Streams,
    /// Lines reserved for commands in flight.
    reserved: usize,
    /// Commands that wait for a reservation.
    waiting: VecDeque<u32>,
    /// Whether anything has become free since the last check for waiting commands.
    stirred: bool,
    /// Lines that are destaged because a command needs them.
    evicting: usize,
    destages: Destages,
    flushes: Vec<u32>,
}

impl MemoryCache {
    pub(super) fn new(spec: &ControllerCacheSpec, drives: Vec<u64>) -> MemoryCache {
        let line = u64::from(spec.line_sectors.unwrap_or(ControllerCacheSpec::LINE_SECTORS));
        let most = (spec.sectors / line).max(2) as usize;
        MemoryCache {
            lines: Lines::new(most, line, spec.protected_ratio),
            drives,
            write_back: spec.writes == ControllerWrites::WriteBack,
            read_ahead: u64::from(spec.read_ahead_sectors),
            read_ahead_evicts: spec.read_ahead_evicts,
            cluster: u64::from(spec.flush_cluster_lines),
            period: spec.flush_period_ms.map(Nanos::from_ms),
            idle: spec.flush_idle_ms.map(Nanos::from_ms),
            last_tick: Instant::ZERO,
            streams: Streams::default(),
            reserved: 0,
            waiting: VecDeque::with_capacity(Controller::AT_ONCE),
            stirred: false,
            evicting: 0,
            destages: Destages::default(),
            flushes: Vec::new(),
        }
    }

    pub(super) fn dirty_lines(&self) -> usize {
        self.lines.dirty()
    }

    /// When dirty lines are to be written although no command needs room.
    pub(super) fn next_event(&self, is_idle: bool, last_busy: Instant) -> Instant {
        if self.lines.dirty() == 0 {
            return Instant::MAX;
        }
        let tick = self.period.map(|period| Instant((self.last_tick.0 / period.0 + 1) * period.0));
        let idle = self.idle.filter(|_| is_idle).map(|idle| last_busy + idle);
        tick.into_iter().chain(idle).min().unwrap_or(Instant::MAX)
    }

    fn takes(&self, drive: u32, request: &Request) -> bool {
        let span = self.lines.span(request);
        !request.fua
            && request.sectors > 0
            && request.end().0 <= self.drives[drive as usize]
            && span.end - span.start <= self.lines.most() as u64 / 2
    }

    fn missing(&self, drive: u32, request: &Request) -> usize {
        let is_missing = |(_, frame, sector): &(Lbn, Option<u32>, u64)| {
            frame.is_none_or(|frame| !self.lines.is_valid(frame, *sector))
        };
        self.lines.each(drive, request.lbn..request.end()).filter(is_missing).count()
    }

    /// Sectors after a read that misses which are fetched with it, where read-ahead takes room as the read's own data do.
    fn fetched_ahead(&self, drive: u32, request: &Request) -> u32 {
        if !self.read_ahead_evicts || request.op != Op::Read || self.missing(drive, request) == 0 {
            return 0;
        }
        let ahead = self.read_ahead.min(self.drives[drive as usize] - request.end().0) as u32;
        let whole = Request { sectors: request.sectors + ahead, ..*request };
        if self.takes(drive, &whole) { ahead } else { 0 }
    }
}

impl Controller {
    fn memory(&mut self) -> &mut MemoryCache {
        match &mut self.cache {
            Cache::Memory(memory) => memory,
            _ => unreachable!("only a controller with memory uses it"),
        }
    }

    pub(super) fn begin_in_memory(&mut self, now: Instant, job: u32, out: &mut Out<'_>) {
        let (drive, request) = self.command(job);
        if request.op == Op::Flush {
            return self.flush(now, job, out);
        }
        let memory = self.memory();
        if !memory.takes(drive, &request) {
            if request.op == Op::Write && request.end().0 <= memory.drives[drive as usize] {
                memory.lines.change(drive, request.lbn..request.end(), Lines::set_stale);
            }
            return self.pass(job, out);
        }
        let ahead = memory.fetched_ahead(drive, &request);
        self.commands[job].state.ahead = ahead;
        let memory = self.memory();
        if memory.waiting.is_empty() && self.reserve(job) {
            return self.go(now, job, out);
        }
        self.memory().waiting.push_back(job);
        self.activity.waited_for_room += 1;
    }

    /// A command's drive, and its run with what is fetched ahead with it.
    fn fetched_run(&self, job: u32) -> (u32, Request) {
        let (drive, request) = self.command(job);
        let sectors = request.sectors + self.commands[job].state.ahead;
        (drive, Request { sectors, ..request })
    }

    fn reserve(&mut self, job: u32) -> bool {
        let (_, request) = self.fetched_run(job);
        let memory = self.memory();
        let span = memory.lines.span(&request);
        let lines = (span.end - span.start) as usize;
        if memory.reserved + lines > memory.lines.most() {
            return false;
        }
        memory.reserved += lines;
        self.commands[job].state.reserved = lines;
        true
    }

    /// Continues commands that waited for room; returns whether to call again.
    pub(super) fn resume_for_room(&mut self, now: Instant, out: &mut Out<'_>) -> bool {
        let Cache::Memory(memory) = &mut self.cache else { return false };
        if !std::mem::take(&mut memory.stirred) {
            return false;
        }
        for _ in 0..self.commands.starved() {
            let Some(job) = self.commands.next_starved() else { break };
            self.waited_for_room(now, job);
            self.go(now, job, out);
        }
        while let Some(job) = self.memory().waiting.front().copied()
            && self.reserve(job)
        {
            self.memory().waiting.pop_front();
            self.waited_for_room(now, job);
            self.go(now, job, out);
        }
        true
    }

    /// Reserves the lines of a command one after the other; once it has them all, transfers its data.
    pub(super) fn go(&mut self, now: Instant, job: u32, out: &mut Out<'_>) {
        let (drive, request) = self.fetched_run(job);
        let span = self.memory().lines.span(&request);
        let starved = self.commands.starved();
        for line in span.start + self.commands[job].state.pinned..span.end {
            let memory = self.memory();
            let frame = match memory.lines.find(drive, line) {
                Some(frame) => frame,
                None => match memory.lines.take(drive, line) {
                    Room::Frame(frame) => frame,
                    Room::Dirty(victim) => {
                        if memory.evicting <= starved {
                            self.destage(victim, true, out);
                        }
                        return self.starve(job);
                    }
                    Room::None => return self.starve(job),
                },
            };
            let lines = &self.memory().lines;
            if let Some(transfer) = lines.filling(frame)
                && request.op == Op::Read
                && lines
                    .each(drive, overlap(&request, lines.blocks(line)))
                    .any(|(_, frame, sector)| frame.is_none_or(|frame| !lines.is_valid(frame, sector)))
            {
                return self.commands.wait(job, transfer);
            }
            self.memory().lines.pin(frame);
            self.commands[job].state.pinned += 1;
        }
        match request.op {
            Op::Read => self.read(now, job, out),
            _ => {
                let landed = self.move_data(now, job);
                self.agenda.add(landed, (job, Step::Landed));
            }
        }
    }

    fn starve(&mut self, job: u32) {
        self.commands.starve(job);
        self.activity.waited_for_room += 1;
    }

    /// Fetches the missing sectors of a read's lines, and reads ahead.
    fn read(&mut self, now: Instant, job: u32, out: &mut Out<'_>) {
        let (drive, request) = self.command(job);
        let before = self.activity.filled_sectors;
        let (is_ahead, whole) = (self.commands[job].state.ahead > 0, self.fetched_run(job).1);
        let missing = if is_ahead { self.memory().missing(drive, &request) as u64 } else { 0 };
        let fills = self.fill(drive, whole.lbn..whole.end(), job, out);
        if is_ahead {
            self.activity.read_ahead_sectors += self.activity.filled_sectors - before - missing;
        }
        self.commands[job].state.waits = fills;
        let memory = self.memory();
        if memory.read_ahead > 0
            && !memory.read_ahead_evicts
            && let Some((number, run)) = memory.streams.read(drive, &request, fills > 0, memory.read_ahead)
        {
            self.read_ahead(drive, number, run, out);
        }
        if fills == 0 {
            self.activity.read_hits += u64::from(!self.commands[job].waited);
            self.deliver(now, job, CacheUse::Whole);
        }
    }

    /// Fetches the missing sectors of a run; returns the number of transfers.
    fn fill(&mut self, drive: u32, run: Range<Lbn>, job: u32, out: &mut Out<'_>) -> u32 {
        let (mut from, mut fills) = (run.start, 0);
        while from < run.end {
            let lines = &self.memory().lines;
            let is_missing = |(_, frame, sector): &(Lbn, Option<u32>, u64)| {
                frame.is_some_and(|frame| !lines.is_valid(frame, *sector))
            };
            let Some((first, ..)) = lines.each(drive, from..run.end).find(is_missing) else { break };
            let end = lines.each(drive, first..run.end).find(|sector| !is_missing(sector));
            let end = end.map_or(run.end, |(end, ..)| end);
            let request = Request::read(first, (end - first) as u32);
            let number = self.transfer(Purpose::Fill { job }, drive, request, out);
            let memory = self.memory();
            for line in memory.lines.span(&request) {
                let frame = memory.lines.find(drive, line).expect("what is missing of a line is");
                memory.lines.fill(frame, number);
            }
            self.activity.filled_sectors += u64::from(request.sectors);
            (from, fills) = (end, fills + 1);
        }
        fills
    }

    /// Reads a run ahead, as far as lines can be had for it without waiting.
    fn read_ahead(&mut self, drive: u32, stream: usize, run: Range<Lbn>, out: &mut Out<'_>) {
        let memory = self.memory();
        let end = Lbn(run.end.0.min(memory.drives[drive as usize]));
        let first = memory.lines.span(&Request::read(run.start, 1)).start;
        let (mut line, mut have, mut taken) = (first, run.start, 0);
        while have < end {
            let room = memory.reserved + taken < memory.lines.most();
            let frame = match memory.lines.find(drive, line) {
                Some(frame) => frame,
                None if !room => break,
                None => match memory.lines.take(drive, line) {
                    Room::Frame(frame) => frame,
                    Room::Dirty(_) | Room::None => break,
                },
            };
            // Else the next one might evict it.
            memory.lines.hold(frame);
            (line, taken) = (line + 1, taken + 1);
            have = memory.lines.blocks(line).start.min(end);
        }
        memory.streams.set_ahead(stream, have);
        let before = self.activity.filled_sectors;
        self.fill(drive, run.start..have.max(run.start), NONE, out);
        self.activity.read_ahead_sectors += self.activity.filled_sectors - before;
        let lines = &mut self.memory().lines;
        for line in first..line {
            let frame = lines.find(drive, line).expect("it is held");
            lines.release(frame);
        }
    }

    pub(super) fn filled(
        &mut self,
        now: Instant,
        number: u32,
        job: u32,
        drive: u32,
        request: &Request,
        how: &Completion,
    ) {
        let memory = self.memory();
        memory.lines.change(drive, request.lbn..request.end(), Lines::set_valid);
        for line in memory.lines.span(request) {
            let frame = memory.lines.find(drive, line).expect("a line stays while it is filled");
            memory.lines.filled(frame, number);
        }
        memory.stirred = true;
        if job == NONE {
            return;
        }
        self.account(now, job, how);
        self.commands[job].state.waits -= 1;
        if self.commands[job].state.waits == 0 {
            self.deliver(now, job, how.cache);
        }
    }

    /// Sends a read's data, which are all in memory.
    fn deliver(&mut self, now: Instant, job: u32, cache: CacheUse) {
        self.commands[job].completion.cache = cache;
        self.let_go(job);
        let over = self.move_data(now, job);
        self.end(over, job);
    }

    fn let_go(&mut self, job: u32) {
        let (drive, request) = self.fetched_run(job);
        let Holding { reserved, .. } = self.commands[job].state;
        let memory = self.memory();
        for line in memory.lines.span(&request) {
            let frame = memory.lines.find(drive, line).expect("a line stays while a command holds it");
            memory.lines.unpin(frame);
        }
        memory.reserved -= reserved;
        memory.stirred = true;
    }

    pub(super) fn landed(&mut self, now: Instant, job: u32, out: &mut Out<'_>) {
        let (drive, request) = self.command(job);
        let memory = self.memory();
        memory.lines.change(drive, request.lbn..request.end(), Lines::set_valid);
        if !memory.write_back {
            self.transfer(Purpose::Through { job }, drive, request, out);
            return;
        }
        if memory.lines.dirty() == 0 {
            // The interval counts from multiples of it, not from when there was last something to do.
            memory.last_tick = now;
        }
        memory.lines.change(drive, request.lbn..request.end(), Lines::set_dirty);
        self.commands[job].completion.cache = CacheUse::Buffered;
        self.let_go(job);
        self.end(now, job);
    }

    pub(super) fn written_through(&mut self, now: Instant, job: u32, how: &Completion) {
        self.account(now, job, how);
        self.let_go(job);
        self.end(now, job);
    }

    /// Begins to write a dirty line, with its neighbours as far as they form a cluster.
    fn destage(&mut self, frame: u32, evicts: bool, out: &mut Out<'_>) {
        let memory = self.memory();
        let (drive, line) = memory.lines.place(frame);
        let is_dirty = |line: u64| {
            let found = memory.lines.find(drive, line);
            found.is_some_and(|frame| {
                !memory.lines.is_moving(frame)
                    && memory
                        .lines
                        .each(drive, memory.lines.blocks(line))
                        .any(|(_, _, sector)| memory.lines.is_dirty(frame, sector))
            })
        };
        let (mut first, mut last) = (line, line);
        while last - first + 1 < memory.cluster && first > 0 && is_dirty(first - 1) {
            first -= 1;
        }
        while last - first + 1 < memory.cluster && is_dirty(last + 1) {
            last += 1;
        }
        let end = memory.lines.blocks(last).end;
        let mut from = memory.lines.blocks(first).start;
        let mut evicts = evicts;
        while let Some(run) = self.dirty_run(drive, from..end) {
            from = run.end;
            self.write_run(drive, run, std::mem::take(&mut evicts), out);
        }
    }

    /// The first run of a drive's sectors that begins and ends with a dirty one and in which all are valid.
    fn dirty_run(&mut self, drive: u32, within: Range<Lbn>) -> Option<Range<Lbn>> {
        let lines = &self.memory().lines;
        let is_dirty = |frame: Option<u32>, sector| frame.is_some_and(|frame| lines.is_dirty(frame, sector));
        let (first, ..) =
            lines.each(drive, within.clone()).find(|(_, frame, sector)| is_dirty(*frame, *sector))?;
        let valid = lines
            .each(drive, first..within.end)
            .take_while(|(_, frame, sector)| frame.is_some_and(|frame| lines.is_valid(frame, *sector)));
        let last = valid.filter(|(_, frame, sector)| is_dirty(*frame, *sector)).map(|(lbn, ..)| lbn).last();
        Some(first..last.unwrap_or(first) + 1)
    }

    fn write_run(&mut self, drive: u32, run: Range<Lbn>, evicts: bool, out: &mut Out<'_>) {
        let request = Request::write(run.start, (run.end - run.start) as u32);
        let memory = self.memory();
        memory.lines.change(drive, run, Lines::set_clean);
        for line in memory.lines.span(&request) {
            let frame = memory.lines.find(drive, line).expect("a dirty line is in memory");
            memory.lines.destage(frame);
        }
        let turn = memory.destages.begin(drive);
        memory.evicting += usize::from(evicts);
        self.activity.destaged_sectors += u64::from(request.sectors);
        self.transfer(Purpose::Destage { turn, evicts }, drive, request, out);
    }

    pub(super) fn destaged(&mut self, turn: u64, evicts: bool, drive: u32, request: &Request) {
        let memory = self.memory();
        for line in memory.lines.span(request) {
            let frame = memory.lines.find(drive, line).expect("a line stays while it is written");
            memory.lines.destaged(frame);
        }
        memory.evicting -= usize::from(evicts);
        memory.destages.end(turn);
        memory.stirred = true;
    }

    fn destage_all(&mut self, drive: u32, out: &mut Out<'_>) {
        while let Some(frame) = self.memory().lines.first_dirty(drive) {
            self.destage(frame, false, out);
        }
    }

    /// Writes lines whose time is due, or because the controller is idle.
    pub(super) fn destage_in_time(&mut self, now: Instant, out: &mut Out<'_>) {
        let (is_idle, last_busy) = (self.held == 0 && !self.commands.has_transfers(), self.last_busy);
        let memory = self.memory();
        if let Some(period) = memory.period
            && now.0 / period.0 > memory.last_tick.0 / period.0
        {
            memory.last_tick = now;
            (0..memory.drives.len() as u32).for_each(|drive| self.destage_all(drive, out));
        } else if let Some(idle) = memory.idle
            && is_idle
            && memory.lines.dirty() > 0
            && now >= last_busy + idle
        {
            let next = (0..memory.drives.len() as u32).find_map(|drive| memory.lines.first_dirty(drive));
            self.destage(next.expect("there is a dirty line"), false, out);
        }
    }

    /// Begins a flush: the present dirty lines of its drive are written, and then the drive is flushed.
    fn flush(&mut self, now: Instant, job: u32, out: &mut Out<'_>) {
        let (drive, _) = self.command(job);
        self.destage_all(drive, out);
        self.commands[job].state.before = self.memory().destages.next();
        self.memory().flushes.push(job);
        self.finish_flushes(now, out);
    }

    pub(super) fn finish_flushes(&mut self, now: Instant, out: &mut Out<'_>) {
        let mut index = 0;
        while let Some(job) = self.memory().flushes.get(index).copied() {
            let Holding { drive, before, .. } = self.commands[job].state;
            if self.memory().destages.is_any_before(before, drive) {
                index += 1;
                continue;
            }
            self.memory().flushes.remove(index);
            self.waited_for_room(now, job);
            self.pass(job, out);
        }
    }
}

fn overlap(request: &Request, run: Range<Lbn>) -> Range<Lbn> {
    request.lbn.max(run.start)..request.end().min(run.end)
}
