//! Block rearrangement in front of a disk or an array, in virtual time.
//!
//! A [`Layer`] around [`headstack_streams::rearrange`], the code for real disks. A change of the hot block table takes no time: the
//! model's table need not survive a crash. An emulator keeps it in a file, outside the model.
//!
//! *Time:* a request has the time split of the command that brought its answer.

use crate::device::{Completion, Drive, MediaWrite};
use crate::home_seeks::HomeSeeks;
use crate::layer::{Completed, Forwarded, Layer, Out, Submission};
use headstack_model::{BlockError, Instant, Lbn, Nanos, Op, QuantityReport, Request};
use headstack_streams::rearrange::{
    BlockAccess, BlockCommand, BlockRequest, CommandBuffer, DirectEnded, PeriodRecord, RearrangeAction,
    RearrangeView, Rearranger, TableChange,
};
use headstack_streams::rearrange_table::PlacementCopies;
use slab::Slab;
use std::collections::VecDeque;
use std::sync::Arc;

/// The arm's time in a period, or since the start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RearrangeTimes {
    /// Reads and writes that needed the arm.
    pub accesses: u64,
    /// Their seeks.
    pub seek: Nanos,
    /// The seeks that the same requests would need, in the order in which they were served, if every block were at its home; zero
    /// in front of an array, whose arms the layer does not know.
    pub home_seek: Nanos,
    /// Seeks, rotational latency and media transfer of copies.
    pub copy_arm: Nanos,
}

impl RearrangeTimes {
    /// Share of the seeks at home that is saved, below 0 where seeks are longer; `None` without seeks at home.
    pub fn saved_share(&self) -> Option<f64> {
        (self.home_seek > Nanos::ZERO).then(|| 1.0 - self.seek.0 as f64 / self.home_seek.0 as f64)
    }

    /// Adds the times and what they save.
    fn report(&self, into: &mut QuantityReport) {
        into.counter("copy_arm_s", self.copy_arm, "The arm's time for copies").detail();
        into.counter("accesses", self.accesses, "Requests that needed the arm").detail();
        into.counter("seek_s", self.seek, "Their seeks").detail();
        into.counter("home_seek_s", self.home_seek, "Their seeks, were every block at its home").detail();
        into.share("seek_saved_share", self.saved_share(), "Share of the seeks at home that is saved")
            .detail();
    }

    fn since(&self, earlier: &RearrangeTimes) -> RearrangeTimes {
        RearrangeTimes {
            accesses: self.accesses - earlier.accesses,
            seek: self.seek - earlier.seek,
            home_seek: self.home_seek - earlier.home_seek,
            copy_arm: self.copy_arm - earlier.copy_arm,
        }
    }
}

/// A period that has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RearrangePeriod {
    /// What the rearranger did in it.
    pub record: PeriodRecord,
    /// The arm's time.
    pub times: RearrangeTimes,
}

/// What a volume's rearranger has done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RearrangeActivity {
    /// Its state and counts.
    pub view: RearrangeView,
    /// Sectors of the region.
    pub reserved_sectors: u64,
    /// First sector of the region's first run.
    pub first: Lbn,
    /// The arm's time since the start.
    pub times: RearrangeTimes,
    /// The last periods, at most a thousand.
    pub periods: Vec<RearrangePeriod>,
}

/// Which of two copies of a block serves a read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum CopyChoice {
    First,
    /// The one nearer to the arm: only while a request is submitted, because later the arm is on its way.
    Nearest,
}

/// The rearranger of a volume.
#[derive(Debug)]
pub struct RearrangeLayer {
    rearranger: Rearranger,
    /// Sectors of the volume as it appears from above.
    visible_sectors: u64,
    /// Requests without an answer, by ticket.
    submissions: Slab<Submission>,
    home_seeks: HomeSeeks,
    /// The arm's time, without the seeks at home.
    times: RearrangeTimes,
    /// The times at the start of the period.
    period_start: RearrangeTimes,
    periods: VecDeque<RearrangePeriod>,
    /// What is left of a write to the media that covers blocks which are not contiguous for clients.
    media_write: Option<MediaWrite>,
    /// Changes of the table that the program has not polled; `None` unless the program keeps the table.
    changes: Option<VecDeque<TableChange>>,
}

impl RearrangeLayer {
    /// Requests in flight for which memory is allocated at the start.
    const AT_ONCE: usize = 1024;

    /// Commands of copies have numbers from here on.
    const COPIES: u32 = 1 << 31;

    pub(crate) fn new(rearranger: Rearranger, drive: Option<Arc<Drive>>) -> RearrangeLayer {
        RearrangeLayer {
            visible_sectors: rearranger.region().visible_sectors(),
            rearranger,
            submissions: Slab::with_capacity(RearrangeLayer::AT_ONCE),
            home_seeks: HomeSeeks::new(drive),
            times: RearrangeTimes::default(),
            period_start: RearrangeTimes::default(),
            periods: VecDeque::new(),
            media_write: None,
            changes: None,
        }
    }

    /// Sectors of the volume as it appears from above.
    pub(crate) fn visible_sectors(&self) -> u64 {
        self.visible_sectors
    }

    /// The arm's time since the start.
    fn times(&self) -> RearrangeTimes {
        RearrangeTimes { home_seek: self.home_seeks.total(), ..self.times }
    }

    /// What it has done.
    pub fn activity(&self) -> RearrangeActivity {
        let region = self.rearranger.region();
        RearrangeActivity {
            view: self.rearranger.view(),
            reserved_sectors: region.reserved_sectors(),
            first: region.runs()[0].first,
            times: self.times(),
            periods: self.periods.iter().copied().collect(),
        }
    }

    /// The rearranger.
    pub fn rearranger(&self) -> &Rearranger {
        &self.rearranger
    }

    /// Continues with the copies and counts of an earlier run, and keeps changes of the table from now on. Call it before the first
    /// request.
    pub(crate) fn restore(&mut self, found: &PlacementCopies) {
        for &(slot, block, is_dirty) in &found.copies {
            self.rearranger.restore_copy(slot, block, is_dirty);
        }
        if let Some(counts) = &found.counts {
            self.rearranger.restore_counts(&counts.hot);
            self.rearranger.restore_period(counts.left);
        }
        self.changes = Some(VecDeque::new());
    }

    /// The next change of the hot block table, if copies were restored.
    pub fn poll_change(&mut self) -> Option<TableChange> {
        self.changes.as_mut()?.pop_front()
    }

    /// Accepts a write to the media of the device below, whose parts [`RearrangeLayer::poll_visible_write`] returns.
    ///
    /// *Assumption:* a slot has always held the block that it holds now. A write that was submitted before the block entered may thus make
    /// data of the block durable early, which a drive may do at any time. No data are durable late, because the home and the copy of
    /// a block are both written from its newest data.
    pub(crate) fn note_media_write(&mut self, written: MediaWrite) {
        self.media_write = Some(written);
    }

    /// The next blocks, as clients number them, of the write to the media.
    pub(crate) fn poll_visible_write(&mut self) -> Option<MediaWrite> {
        loop {
            let written = self.media_write.take()?;
            let (visible, sectors) = self.rearranger.visible_run(written.start);
            let end = written.end.min(written.start + sectors);
            if end < written.end {
                self.media_write = Some(MediaWrite { start: end, ..written });
            }
            if let Some(start) = visible {
                return Some(MediaWrite { start, end: start + (end - written.start), ..written });
            }
        }
    }

    /// Whether a request is the rearranger's. It leaves one beyond the visible sectors to the device, which refuses it.
    fn serves(&self, request: &Request) -> bool {
        let end = request.lbn.0.saturating_add(u64::from(request.sectors));
        request.op == Op::Flush || (request.sectors > 0 && end <= self.visible_sectors)
    }

    /// A block number that the device refuses: a visible number beyond the end may be a sector of the disk.
    fn refused(&self, lbn: Lbn) -> Lbn {
        Lbn(lbn.0.saturating_add(self.rearranger.region().reserved_sectors()))
    }

    /// Plans the commands of a request that the rearranger does not forward as it is.
    #[inline(never)]
    fn submit_planned(&mut self, now: Instant, submission: Submission, out: &mut Out<'_>) {
        let Request { op, lbn, sectors, .. } = submission.request;
        let ticket = self.submissions.insert(submission) as u64;
        self.rearranger.submit(now, BlockRequest { ticket, access: access(op), lbn, sectors });
        self.act(now, CopyChoice::Nearest, None, out);
    }

    /// Carries out the rearranger's actions; `answer` is that of the command that has ended.
    fn act(&mut self, now: Instant, choice: CopyChoice, answer: Option<&Completion>, out: &mut Out<'_>) {
        while let Some(action) = self.rearranger.poll_action() {
            match action {
                RearrangeAction::Start(command) => self.start(command, choice, out),
                RearrangeAction::Record(change) => {
                    self.changes.iter_mut().for_each(|changes| changes.push_back(change));
                    self.rearranger.handle_recorded(now, change.slot);
                }
                RearrangeAction::Answer { ticket, result } => {
                    let answer = answer.expect("a command of the request has ended");
                    self.answer(ticket as usize, result, answer, out);
                }
            }
        }
        out.wake_at(self.first_wake());
    }

    fn start(&mut self, command: BlockCommand, choice: CopyChoice, out: &mut Out<'_>) {
        let BlockCommand { id, access, lbn, sectors, buffer, other_lbn } = command;
        let distance = |lbn| out.child(0).cylinders_to(lbn);
        let lbn = match other_lbn {
            Some(other) if choice == CopyChoice::Nearest && distance(other) < distance(lbn) => other,
            _ => lbn,
        };
        let op = match access {
            BlockAccess::Read => Op::Read,
            BlockAccess::Write => Op::Write,
            BlockAccess::Flush => Op::Flush,
        };
        let submission = match buffer {
            CommandBuffer::Request { ticket, .. } => {
                let from = self.submissions[ticket as usize];
                let fua = from.request.fua;
                let request =
                    if op == Op::Flush { Request::flush() } else { Request { op, lbn, sectors, fua } };
                Submission { id, request, ..from }
            }
            CommandBuffer::Copy(_) => {
                let request = Request { op, lbn, sectors, fua: false };
                Submission { sync: false, ..Submission::new(RearrangeLayer::COPIES + id, request) }
            }
        };
        out.down(0, submission);
    }

    fn answer(
        &mut self,
        ticket: usize,
        result: Result<(), BlockError>,
        answer: &Completion,
        out: &mut Out<'_>,
    ) {
        let Submission { id, request, .. } = self.submissions.remove(ticket);
        let mut completion = *answer;
        if let Err(error) = result {
            completion.outcome = error.into();
        }
        self.note_answer(&request, &completion);
        out.up(Completed { id, completion, cached: false });
    }

    /// Adds a request to the seeks at home, if it needed the arm.
    fn note_answer(&mut self, request: &Request, completion: &Completion) {
        if completion.travel.is_some() && request.op != Op::Flush {
            self.home_seeks.add_sector(request.lbn, request.op == Op::Write, self.rearranger.region());
        }
    }

    /// Counts the arm's time of a command.
    #[inline]
    fn note_command(&mut self, is_copy: bool, completion: &Completion) {
        let parts = &completion.parts;
        if is_copy {
            let arm = [parts.seek, parts.rotational_latency, parts.retries, parts.media];
            arm.into_iter().for_each(|part| self.times.copy_arm += part);
        } else if completion.travel.is_some() {
            self.times.accesses += 1;
            self.times.seek += parts.seek;
        }
    }

    /// Adds the arm's time to the periods that have just ended.
    fn note_periods(&mut self) {
        let ended = self.rearranger.view().periods;
        let known = self.periods.back().map_or(0, |last| last.record.number + 1);
        if ended == known {
            return;
        }
        let record = *self.rearranger.periods().last().expect("a period has ended");
        let now = self.times();
        let times = now.since(&self.period_start);
        self.period_start = now;
        self.periods.push_back(RearrangePeriod { record, times });
        if self.periods.len() > self.rearranger.periods().count() {
            self.periods.pop_front();
        }
    }
}

impl Layer for RearrangeLayer {
    fn report(&self, into: &mut QuantityReport) {
        let into = into.group("rearrange");
        let (view, region) = (self.rearranger.view(), self.rearranger.region());
        view.counters.report(into);
        self.times().report(into);
        into.gauge("reserved_sectors", region.reserved_sectors(), "Sectors of the region").detail();
        into.gauge("first_sector", region.runs()[0].first.0, "First sector of the region").detail();
        view.report_state("dirty_copies", into);
        into.list("periods", &self.periods, |RearrangePeriod { record, times }, into| {
            record.counters.report(into);
            times.report(into);
            into.gauge("end_s", record.end.since_start(), "When the period ended");
            into.gauge("hot_blocks", record.hot_blocks, "Hot blocks planned into the region at its end");
            into.gauge("copies", record.copies, "Copies in the region at its end");
        });
    }

    fn submit(&mut self, now: Instant, submission: Submission, out: &mut Out<'_>) {
        let Request { op, lbn, sectors, .. } = submission.request;
        if !self.serves(&submission.request) {
            return out.forward(0, self.refused(lbn));
        }
        // Most requests need nothing but a place, and neither they nor their ends change the next event.
        match self.rearranger.submit_direct(now, access(op), lbn, sectors) {
            Some((key, lbn)) => out.forward_noted(0, lbn, key),
            None => self.submit_planned(now, submission, out),
        }
    }

    fn note(&mut self, now: Instant, forwarded: &Forwarded<'_>, out: &mut Out<'_>) {
        let Forwarded { key, request, completion } = forwarded;
        self.note_command(false, completion);
        let DirectEnded { slot, may_act } = self.rearranger.end_direct(now, *key);
        if let Some(travel) = completion.travel {
            let is_write = request.op == Op::Write;
            match slot {
                None => self.home_seeks.add_track(travel.track(), is_write),
                Some(slot) => {
                    self.home_seeks.add_slot(slot, request.lbn, is_write, self.rearranger.region());
                }
            }
        }
        if may_act {
            self.act(now, CopyChoice::First, None, out);
        }
    }

    fn complete(&mut self, now: Instant, _child: u32, answer: &Completed, out: &mut Out<'_>) {
        let (is_copy, id) = match answer.id.checked_sub(RearrangeLayer::COPIES) {
            Some(id) => (true, id),
            None => (false, answer.id),
        };
        self.note_command(is_copy, &answer.completion);
        self.rearranger.handle_end(now, id, answer.completion.outcome.result());
        self.act(now, CopyChoice::First, Some(&answer.completion), out);
    }

    fn wake(&mut self, now: Instant, out: &mut Out<'_>) {
        if self.rearranger.poll_timeout().is_some_and(|at| at <= now) {
            self.rearranger.handle_timeout(now);
            self.note_periods();
        }
        self.act(now, CopyChoice::First, None, out);
    }

    fn first_wake(&self) -> Instant {
        self.rearranger.poll_timeout().unwrap_or(Instant::MAX)
    }
}

fn access(op: Op) -> BlockAccess {
    match op {
        Op::Read => BlockAccess::Read,
        Op::Write => BlockAccess::Write,
        Op::Flush => BlockAccess::Flush,
    }
}
