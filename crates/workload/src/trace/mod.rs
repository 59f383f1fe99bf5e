//! Reads and writes traces: one file a format, and one list of them all.
//!
//! [`Trace`] reads any of them from any input, compressed or not, one record at a time; [`TraceWriter`]
//! writes any of them. Neither holds more than a record and some buffers, and no input makes them panic.
//! [`Replay`] replays a trace on the volumes of a rig, [`stat`] computes its statistics, [`Cut`] selects a part of it.
//!
//! A format is an entry of [`all`]: how it is recognised, read and written, and what it can express of a request
//! ([`Carries`]). The list feeds the command's help, the page about the formats and the property tests.

mod alibaba;
mod binary;
mod biosnoop;
mod blkparse;
mod blktrace;
mod carries;
mod closed;
mod column_names;
mod csv;
mod cut;
mod disksim;
mod error;
mod events;
mod iolog;
mod msr;
mod names;
mod packed;
#[cfg(feature = "parquet")]
mod parquet;
mod reader;
mod record;
mod replay;
mod spc;
mod srt;
pub mod stat;
mod table;
mod tencent;
mod text;
mod validate;
mod vscsi;
mod writer;

use std::io::BufRead;

pub use carries::{Carries, Loss, Losses, Presence, Span};
pub use column_names::ColumnNames;
pub use cut::{Cut, CutError, CutOptions};
pub use error::{Fault, Place, TraceError};
pub use packed::Packing;
pub use reader::Trace;
pub use record::{Header, Kind, Native, Numbering, Record};
pub use replay::{DeviceMap, OutOfRange, Replay, ReplayError, ReplayOptions};
pub use srt::Words as SrtWords;
pub use writer::TraceWriter;

/// A trace format.
#[derive(Clone, Copy, Debug)]
#[allow(missing_docs, reason = "the names say it")]
pub struct Format {
    /// The name by which it is chosen.
    pub name: &'static str,
    pub title: &'static str,
    /// Usual endings of its files, the most usual one first.
    pub extensions: &'static [&'static str],
    pub encoding: Encoding,
    /// What a line or record looks like.
    pub form: &'static str,
    /// Notes on the format.
    pub note: &'static str,
    pub carries: Carries,
    sniff: fn(&[u8]) -> bool,
    read: for<'a> fn(Box<dyn BufRead + 'a>) -> Box<dyn Source + 'a>,
    write: fn() -> Box<dyn Encode>,
}

/// How a format encodes its numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "the names say it")]
pub enum Encoding {
    Text,
    /// Records of bytes.
    Binary,
}

/// All formats.
pub fn all() -> &'static [Format] {
    const ALL: [Format; 17] = [
        disksim::FORMAT,
        validate::FORMAT,
        srt::FORMAT,
        spc::FORMAT,
        msr::FORMAT,
        alibaba::FORMAT,
        tencent::FORMAT,
        vscsi::FORMAT_1,
        vscsi::FORMAT_2,
        blkparse::FORMAT,
        blktrace::FORMAT,
        iolog::FORMAT_2,
        iolog::FORMAT_3,
        csv::FORMAT,
        biosnoop::FORMAT,
        table::FORMAT_CSV,
        table::FORMAT_TSV,
    ];
    const JOINED: [Format; ALL.len() + WITH_FEATURES.len()] = joined(&ALL, &WITH_FEATURES);
    &JOINED
}

/// Formats that need a feature.
#[cfg(feature = "parquet")]
const WITH_FEATURES: [Format; 1] = [parquet::FORMAT];
#[cfg(not(feature = "parquet"))]
const WITH_FEATURES: [Format; 0] = [];

const fn joined<const N: usize>(first: &[Format], then: &[Format]) -> [Format; N] {
    let mut all = [first[0]; N];
    let mut at = 0;
    while at < N {
        all[at] = if at < first.len() { first[at] } else { then[at - first.len()] };
        at += 1;
    }
    all
}

/// The format of this name.
pub fn named(name: &str) -> Option<&'static Format> {
    all().iter().find(|format| format.name == name)
}

trait Source {
    /// The next request; none at the end. After a fault that is not final it may be called again.
    fn next_record(&mut self) -> Result<Option<Record>, Fault>;
    /// The place of the request last returned, or of the fault last met.
    fn position(&self) -> Place;
    /// The header of the trace, as far as it was read.
    fn header(&self) -> &Header {
        &NOTHING
    }
}

/// The header of a trace without one.
static NOTHING: Header =
    Header { preamble: Vec::new(), big_endian: false, names: Vec::new(), numbering: Numbering::Plain };

/// Encodes a format. Records are fitted to what it [`Carries`].
trait Encode {
    /// Appends what comes before the first request.
    fn begin(&mut self, _header: &Header, _out: &mut Vec<u8>) {}
    fn record(&mut self, record: &Record, header: &Header, out: &mut Vec<u8>);
    /// Appends what comes after the last request.
    fn end(&mut self, _header: &Header, _out: &mut Vec<u8>) {}
}
