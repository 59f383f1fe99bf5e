//! Arrays with parity: the reads and writes for a row.
//!
//! A part of a row is written in one of three methods, each of which first reads what it needs to compute the new parity:
//!
//! * *read-modify-write* reads the old data and the old parity;
//! * *reconstruct-write* reads the rest of the row;
//! * with a failed member, a write may read *all that remains*, from which the lost unit is computed.
//!
//! The plan uses the method with the fewest reads, or, of the first two, the one that a threshold selects. A whole row needs no read.
//! A lost unit is recovered from all that remains, and written by its parity.
//!
//! Of a unit of parity, one access reads or writes everything between the first and the last written block, unless two written
//! runs lie more than 32 blocks apart: then each has its own access.
//! Not modelled: locks, by which a real array separates two writes of one row.
//!
//! *Source:* Chen, Lee, Gibson, Katz and Patterson, "RAID: high-performance, reliable secondary storage" (1994), section 4.

use super::layout::Cut;
use super::plan::{Phase, Plan, part};
use super::units::Row;
use super::{Array, Policy, WriteOrder};
use headstack_model::{Op, Request};

/// Blocks between two runs of parity that are transferred with them rather than accessed around.
///
/// *Source:* DiskSim 4.0 (`LOGORG_PARITY_SEQGIVE`).
const GAP: u64 = 32;

/// A run of a unit's blocks; empty unless `to` is after `from`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Span {
    from: u64,
    to: u64,
}

impl Span {
    fn is_empty(self) -> bool {
        self.to <= self.from
    }

    fn hull(self, other: Span) -> Span {
        match (self.is_empty(), other.is_empty()) {
            (_, true) => self,
            (true, _) => other,
            _ => Span { from: self.from.min(other.from), to: self.to.max(other.to) },
        }
    }

    /// The smallest run that contains the blocks not in `other`.
    fn without(self, other: Span) -> Span {
        if other.is_empty() {
            return self;
        }
        let before = Span { from: self.from, to: self.to.min(other.from) };
        let after = Span { from: self.from.max(other.to), to: self.to };
        before.hull(after)
    }
}

/// The requested part of a row, unit by unit: data first, then parity.
#[derive(Clone, Debug, Default)]
pub(super) struct Spans {
    requested: Vec<Span>,
    read: Vec<Span>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum WriteMethod {
    ReadModify,
    Reconstruct,
    AllRemaining,
}

impl Array {
    /// Plans the accesses for the part of a row that begins at `first`; returns how much of `sectors` that covers.
    pub(super) fn plan_row(&mut self, request: &Request, first: &Cut, sectors: u64, plan: &mut Plan) -> u64 {
        let row = first.row;
        let mut spans = std::mem::take(&mut self.spans);
        let units = (self.layout.width() + self.layout.parities()) as usize;
        for list in [&mut spans.requested, &mut spans.read] {
            list.clear();
            list.resize(units, Span::default());
        }
        let (mut unit, mut from, mut left) = (first.unit as usize, first.offset, sectors);
        if request.op == Op::Write && self.lies_apart(first, sectors) {
            left = row.sectors - from;
        }
        let planned = left;
        while left > 0 && unit < self.layout.width() as usize {
            let here = left.min(row.sectors - from);
            spans.requested[unit] = Span { from, to: from + here };
            (unit, from, left) = (unit + 1, 0, left - here);
        }
        match request.op {
            Op::Read => self.plan_row_read(request, &row, &mut spans, plan),
            _ => self.plan_row_write(request, &row, &mut spans, plan),
        }
        self.spans = spans;
        planned - left
    }

    /// Whether a run of blocks is the end of one unit and the beginning of the next, so far apart within their units that a single
    /// access for the parity of both would transfer too much in between.
    fn lies_apart(&self, first: &Cut, sectors: u64) -> bool {
        let here = first.row.sectors - first.offset;
        let next = sectors.saturating_sub(here);
        next > 0 && first.unit + 1 < self.layout.width() && first.offset > next + GAP
    }

    /// The member with a unit of a row: of data, and after those of parity.
    fn holder(&self, row: &Row, unit: usize) -> u32 {
        match (unit as u32).checked_sub(self.layout.width()) {
            None => self.layout.data(row, unit as u32, 0).0,
            Some(parity) => self.layout.parity(row, parity),
        }
    }

    /// The member that can read a run of a unit.
    fn reads(&self, row: &Row, unit: usize, span: Span) -> Option<u32> {
        self.failed.readable(self.holder(row, unit), row.start + span.to)
    }

    /// The member that must write a run of a unit.
    fn writes(&self, row: &Row, unit: usize, span: Span) -> Option<u32> {
        self.failed.writable(self.holder(row, unit), row.start + span.from)
    }

    fn plan_row_read(&mut self, request: &Request, row: &Row, spans: &mut Spans, plan: &mut Plan) {
        let mut lost = Span::default();
        for (unit, requested) in
            spans.requested.iter().enumerate().filter(|(_, requested)| !requested.is_empty())
        {
            match self.reads(row, unit, *requested) {
                Some(_) => spans.read[unit] = *requested,
                None => lost = lost.hull(*requested),
            }
        }
        if !lost.is_empty() {
            self.read_remaining(row, lost, &mut spans.read);
        }
        self.add_reads(request, row, &spans.read, plan);
    }

    /// Plans reads of enough units that the others can be computed.
    fn read_remaining(&self, row: &Row, span: Span, read: &mut [Span]) {
        let readable = (0..read.len()).filter(|unit| self.reads(row, *unit, span).is_some());
        for unit in readable.take(self.layout.width() as usize) {
            read[unit] = read[unit].hull(span);
        }
    }

    fn add_reads(&mut self, request: &Request, row: &Row, read: &[Span], plan: &mut Plan) {
        for (unit, span) in read.iter().enumerate().filter(|(_, span)| !span.is_empty()) {
            let member = self.reads(row, unit, *span).expect("what cannot be read is not requested");
            let access = part(request, Op::Read, member, row.start + span.from, span.to - span.from);
            self.planner.add(plan, Phase::First, access);
        }
    }

    fn plan_row_write(&mut self, request: &Request, row: &Row, spans: &mut Spans, plan: &mut Plan) {
        let width = self.layout.width() as usize;
        let whole = spans.requested.iter().copied().fold(Span::default(), Span::hull);
        spans.requested[width..].fill(whole);
        let parities = (width..spans.requested.len()).any(|unit| self.writes(row, unit, whole).is_some());
        let all = Span { from: 0, to: row.sectors };
        if parities && spans.requested.iter().any(|requested| *requested != all) {
            let method = self.cheapest(row, whole, &spans.requested);
            self.read_for(method, row, whole, spans);
        }
        self.add_reads(request, row, &spans.read, plan);
        for (unit, span) in spans.requested.iter().enumerate().filter(|(_, span)| !span.is_empty()) {
            if let Some(member) = self.writes(row, unit, *span) {
                let access = part(request, Op::Write, member, row.start + span.from, span.to - span.from);
                let early = unit < width && self.shape.write_order == WriteOrder::DataFirst;
                self.planner.add(plan, if early { Phase::Early } else { Phase::Then }, access);
            }
        }
    }

    /// The cheapest method to write the runs `requested`, which lie within `whole` of their units.
    fn cheapest(&self, row: &Row, whole: Span, requested: &[Span]) -> WriteMethod {
        let width = self.layout.width() as usize;
        let touched = requested[..width].iter().filter(|span| !span.is_empty()).count();
        let (mut modify, mut reconstruct) = (Some(0), Some(0));
        let count = |reads: &mut Option<u32>, unit: usize, span: Span| {
            if !span.is_empty() {
                *reads = reads.filter(|_| self.reads(row, unit, span).is_some()).map(|reads| reads + 1);
            }
        };
        for (unit, span) in requested.iter().enumerate() {
            if unit < width {
                count(&mut modify, unit, *span);
                count(&mut reconstruct, unit, whole.without(*span));
            } else if self.writes(row, unit, whole).is_some() {
                count(&mut modify, unit, whole);
            }
        }
        match (modify, reconstruct, self.shape.policy) {
            (Some(_), Some(_), Policy::Threshold(ratio)) => {
                let few = (touched as f64) < ratio * self.shape.members.len() as f64;
                if few { WriteMethod::ReadModify } else { WriteMethod::Reconstruct }
            }
            (Some(modify), Some(reconstruct), Policy::FewestReads) if reconstruct < modify => {
                WriteMethod::Reconstruct
            }
            (Some(_), ..) => WriteMethod::ReadModify,
            (None, Some(_), _) => WriteMethod::Reconstruct,
            (None, None, _) => WriteMethod::AllRemaining,
        }
    }

    fn read_for(&self, method: WriteMethod, row: &Row, whole: Span, spans: &mut Spans) {
        let width = self.layout.width() as usize;
        match method {
            WriteMethod::ReadModify => {
                for unit in 0..spans.requested.len() {
                    if unit < width || self.writes(row, unit, whole).is_some() {
                        spans.read[unit] = spans.requested[unit];
                    }
                }
            }
            WriteMethod::Reconstruct => {
                for unit in 0..width {
                    spans.read[unit] = whole.without(spans.requested[unit]);
                }
            }
            WriteMethod::AllRemaining => self.read_remaining(row, whole, &mut spans.read),
        }
    }

    /// Plans the reads from which a run of a member's blocks is recovered.
    pub(super) fn plan_lost_unit(&mut self, request: &Request, from: u64, to: u64, plan: &mut Plan) {
        let row = self.layout.row_at(from);
        let mut spans = std::mem::take(&mut self.spans);
        spans.read.clear();
        spans.read.resize((self.layout.width() + self.layout.parities()) as usize, Span::default());
        self.read_remaining(&row, Span { from: from - row.start, to: to - row.start }, &mut spans.read);
        self.add_reads(request, &row, &spans.read, plan);
        self.spans = spans;
    }
}
