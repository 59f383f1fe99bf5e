//! What a format can express of a request, and what is lost when a request is written in it.

use headstack_model::{Instant, Nanos};

use super::{Kind, Record};

/// What a format can express of a request.
///
/// *Units:* nanoseconds and bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Carries {
    /// Times are multiples of this; 0 where the format has no times.
    pub tick: u64,
    /// The latest time.
    pub latest: u64,
    /// Offsets are multiples of this.
    pub offset_grain: u64,
    /// Lengths are multiples of this.
    pub grain: u64,
    /// The largest end of a request.
    pub reach: u64,
    /// The longest request.
    pub longest: u64,
    /// Whether a read or write may have no bytes.
    pub empty: bool,
    /// The largest number of devices.
    pub devices: u64,
    /// Whether it has flushes.
    pub flush: bool,
    /// Whether it has trims.
    pub trim: bool,
    /// Response times, if it has them.
    pub response: Option<Span>,
    /// Think times, if it has them: the trace is then replayed closed.
    pub think: Option<Span>,
    /// Whether it has the process.
    pub source: Presence,
}

/// Whether a format has something for a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Presence {
    /// Not at all.
    Never,
    /// If it is known.
    Sometimes,
    /// For every request; 0 if it is unknown.
    Always,
}

/// What a format can express of a span of time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span {
    /// It is a multiple of this, in nanoseconds.
    pub tick: u64,
    /// The longest, in nanoseconds.
    pub longest: u64,
    /// Whether every request has it, so that an unknown one is written as 0.
    pub always: bool,
}

impl Carries {
    /// Reads and writes at times in nanoseconds, to numbered devices, in bytes, and nothing else.
    pub const LEAST: Carries = Carries {
        tick: 1,
        latest: 1 << 63,
        offset_grain: 1,
        grain: 1,
        reach: 1 << 63,
        longest: 1 << 62,
        empty: false,
        devices: 1 << 32,
        flush: false,
        trim: false,
        response: None,
        think: None,
        source: Presence::Never,
    };

    /// Reduces `record` to what the format can express and counts the losses. `false` if it cannot be expressed at all.
    pub fn fit(&self, record: &mut Record, losses: &mut Losses) -> bool {
        self.fit_run(record, losses);
        if let Some(loss) = self.unfit(record) {
            losses.count(loss);
            return false;
        }
        if self.tick > 0 && !record.time.0.is_multiple_of(self.tick) {
            record.time.0 -= record.time.0 % self.tick;
            losses.count(Loss::Time);
        }
        fit_span(&mut record.response, self.response, [Loss::Response, Loss::ResponseRounded], losses);
        fit_span(&mut record.think, self.think, [Loss::Think, Loss::ThinkRounded], losses);
        match self.source {
            Presence::Never if record.source.take().is_some() => losses.count(Loss::Source),
            Presence::Always => record.source = record.source.or(Some(0)),
            _ => {}
        }
        true
    }

    /// Whether a time is later than the format can express.
    pub fn is_too_late(&self, time: Instant) -> bool {
        self.tick > 0 && time.0 > self.latest
    }

    fn unfit(&self, record: &Record) -> Option<Loss> {
        let data = matches!(record.kind, Kind::Read | Kind::Write);
        let reasons = [
            (record.kind == Kind::Flush && !self.flush, Loss::Flush),
            (record.kind == Kind::Trim && !self.trim, Loss::Trim),
            (data && record.bytes == 0 && !self.empty, Loss::Empty),
            (u64::from(record.device) >= self.devices, Loss::Device),
            (self.is_too_late(record.time), Loss::Late),
            (record.bytes > self.longest, Loss::Long),
            (record.end() > self.reach, Loss::Far),
        ];
        reasons.into_iter().find(|(met, _)| *met).map(|(_, loss)| loss)
    }

    fn fit_run(&self, record: &mut Record, losses: &mut Losses) {
        let rest = record.offset % self.offset_grain;
        if rest == 0 && record.bytes.is_multiple_of(self.grain) {
            return;
        }
        record.offset -= rest;
        record.bytes = record.bytes.saturating_add(rest).next_multiple_of(self.grain);
        losses.count(Loss::Grain);
    }
}

fn fit_span(
    span: &mut Option<Nanos>,
    carried: Option<Span>,
    [gone, rounded]: [Loss; 2],
    losses: &mut Losses,
) {
    match (span.as_mut(), carried) {
        (Some(_), None) => {
            *span = None;
            losses.count(gone);
        }
        (Some(time), Some(carried)) => {
            let fitted = time.0.min(carried.longest);
            let fitted = fitted - fitted % carried.tick;
            if fitted != time.0 {
                time.0 = fitted;
                losses.count(rounded);
            }
        }
        (None, Some(Span { always: true, .. })) => *span = Some(Nanos::ZERO),
        (None, _) => {}
    }
}

/// A part of a request that was lost because a format cannot express it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "`words` says it")]
pub enum Loss {
    Flush,
    Trim,
    Empty,
    Device,
    Late,
    Long,
    Far,
    Grain,
    Time,
    Response,
    ResponseRounded,
    Think,
    ThinkRounded,
    Source,
}

impl Loss {
    /// All losses, those that leave a request out first.
    pub const ALL: [Loss; 14] = [
        Loss::Flush,
        Loss::Trim,
        Loss::Empty,
        Loss::Device,
        Loss::Late,
        Loss::Long,
        Loss::Far,
        Loss::Grain,
        Loss::Time,
        Loss::Response,
        Loss::ResponseRounded,
        Loss::Think,
        Loss::ThinkRounded,
        Loss::Source,
    ];

    /// Whether the whole request was left out.
    pub fn leaves_out(self) -> bool {
        (self as usize) <= Loss::Far as usize
    }

    /// The text after their number: `flushes left out`.
    pub fn words(self) -> &'static str {
        match self {
            Loss::Flush => "flushes left out",
            Loss::Trim => "trims left out",
            Loss::Empty => "requests without bytes left out",
            Loss::Device => "requests left out: the format has no number for their device",
            Loss::Late => "requests left out: too late",
            Loss::Long => "requests left out: too long",
            Loss::Far => "requests left out: too far behind",
            Loss::Grain => "requests widened to whole sectors",
            Loss::Time => "times rounded down",
            Loss::Response => "response times left out",
            Loss::ResponseRounded => "response times rounded down",
            Loss::Think => "think times left out",
            Loss::ThinkRounded => "think times rounded down",
            Loss::Source => "processes left out",
        }
    }
}

/// The number of each loss.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Losses([u64; Loss::ALL.len()]);

impl Losses {
    fn count(&mut self, loss: Loss) {
        self.0[loss as usize] += 1;
    }

    /// The losses, with their numbers.
    pub fn iter(&self) -> impl Iterator<Item = (Loss, u64)> {
        Loss::ALL.into_iter().zip(self.0).filter(|(_, count)| *count > 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECTORS: Carries = Carries {
        tick: 1000,
        offset_grain: 512,
        grain: 512,
        reach: 1 << 20,
        longest: 4096,
        ..Carries::LEAST
    };

    fn fit(carries: &Carries, mut record: Record) -> (Record, Vec<(Loss, u64)>) {
        let mut losses = Losses::default();
        carries.fit(&mut record, &mut losses);
        (record, losses.iter().collect())
    }

    #[test]
    fn byte_range_is_widened_to_whole_sectors() {
        let (record, lost) = fit(&SECTORS, Record::new(Instant(5000), 0, Kind::Read, 1000, 100));
        assert_eq!((record.offset, record.bytes), (512, 1024));
        assert_eq!(lost, [(Loss::Grain, 1)]);
        let (record, lost) = fit(&SECTORS, Record::new(Instant(5001), 0, Kind::Read, 1024, 512));
        assert_eq!((record.time, record.offset, record.bytes), (Instant(5000), 1024, 512));
        assert_eq!(lost, [(Loss::Time, 1)]);
    }

    #[test]
    fn unrepresentable_records_are_counted_as_lost() {
        let of = |kind, offset, bytes| fit(&SECTORS, Record::new(Instant(0), 0, kind, offset, bytes)).1;
        assert_eq!(of(Kind::Flush, 0, 0), [(Loss::Flush, 1)]);
        assert_eq!(of(Kind::Trim, 0, 512), [(Loss::Trim, 1)]);
        assert_eq!(of(Kind::Read, 0, 0), [(Loss::Empty, 1)]);
        assert_eq!(of(Kind::Read, 0, 8192), [(Loss::Long, 1)]);
        assert_eq!(of(Kind::Write, 1 << 20, 512), [(Loss::Far, 1)]);
        assert_eq!(of(Kind::Write, (1 << 20) - 512, 512), []);
    }

    #[test]
    fn time_spans_are_rounded_dropped_or_zeroed() {
        let span = Span { tick: 1000, longest: 5_000_000, always: true };
        let carries = Carries { response: Some(span), ..SECTORS };
        let record =
            |response, think| Record { response, think, ..Record::new(Instant(0), 0, Kind::Read, 0, 512) };
        let (fitted, lost) = fit(&carries, record(Some(Nanos(1_999)), Some(Nanos(7))));
        assert_eq!((fitted.response, fitted.think), (Some(Nanos(1000)), None));
        assert_eq!(lost, [(Loss::ResponseRounded, 1), (Loss::Think, 1)]);
        assert_eq!(fit(&carries, record(Some(Nanos(1 << 60)), None)).0.response, Some(Nanos(5_000_000)));
        assert_eq!(fit(&carries, record(None, None)).0.response, Some(Nanos::ZERO));
        assert_eq!(fit(&SECTORS, record(Some(Nanos(9)), None)).1, [(Loss::Response, 1)]);
    }
}
