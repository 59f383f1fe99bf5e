//! Which waiting request next: one file an algorithm, and one list of them all.

mod asptf;
mod axis;
mod batch;
mod bounded;
mod built_in;
mod c_look;
mod c_scan;
mod edf;
mod fcfs;
mod fscan;
mod gstf;
mod look;
mod n_step;
mod p_scan;
mod queue_order;
mod reads_first;
mod scan;
mod scan_edf;
mod search;
mod spctf;
mod sptf;
mod sstf;
mod text;
mod vr;
mod wstf;

use std::fmt;

use headstack_model::{Lbn, Nanos};

use crate::queue::{QueueView, Slot};
use built_in::Algorithm;

pub use queue_order::QueueOrder;
pub use text::{OrderError, built_in, by_name, knowledge};

/// The cost of an access from the arm's present position.
pub trait AccessCost {
    /// Where the arm is.
    fn arm_cylinder(&self) -> u32;
    /// Cylinders of the disk.
    fn cylinders(&self) -> u32;
    /// The block after the last one accessed.
    fn last_lbn(&self) -> Lbn;
    /// The block from which a sweep continues: requests at it or after it lie ahead. A host's sweep continues from the start of
    /// its last request, so that a block that was just read and is then written comes next.
    fn swept_to(&self) -> Lbn {
        self.last_lbn()
    }
    /// A lower bound of the time to reach a cylinder, the seek alone. It never falls as the distance grows, on either
    /// side of the arm.
    fn seek_at_least(&self, cylinder: u32) -> Nanos;
    /// Seek, settle and rotational latency until the first wanted sector.
    fn positioning(&self, slot: &Slot) -> Nanos;
    /// Whether the cache could answer it by now. Without a cache it never could.
    fn is_cached(&self, _slot: &Slot) -> bool {
        false
    }
}

/// An algorithm that chooses the next request. It never acts.
pub trait Order: fmt::Debug + Send {
    /// The index in `queue.slots` of the request to serve next; none if the queue is empty. It is not called without a request,
    /// and the queue's owner panics if the index is beyond the slots.
    fn choose(&mut self, queue: &QueueView<'_>, cost: &dyn AccessCost) -> Option<usize>;
}

/// An edge of the disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "the names of the fields say it")]
pub enum Edge {
    First,
    Last,
}

/// What an order may use, in addition to the time and a request's own properties.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[allow(missing_docs, reason = "the names of the fields say it")]
pub enum Knowledge {
    Arrival,
    Lbn,
    Cylinder,
    /// Cylinder, head and angle: the whole positioning time.
    Position,
    /// The whole positioning time, and the contents of the cache.
    Cache,
}

impl Knowledge {
    /// Its name: `arrival`, `LBN`, `cylinder`, `position` or `position and cache`.
    pub fn name(self) -> &'static str {
        match self {
            Knowledge::Arrival => "arrival",
            Knowledge::Lbn => "LBN",
            Knowledge::Cylinder => "cylinder",
            Knowledge::Position => "position",
            Knowledge::Cache => "position and cache",
        }
    }
}

/// A parameter of an order, in parentheses after its name.
#[derive(Clone, Copy, Debug, PartialEq)]
#[allow(missing_docs, reason = "the names of the fields say it")]
pub struct Parameter {
    /// Its letter in help and documents.
    pub letter: &'static str,
    /// Its meaning, with the unit.
    pub summary: &'static str,
    pub default: f64,
    pub least: f64,
    pub most: f64,
    pub is_whole: bool,
}

impl Parameter {
    const fn real(
        letter: &'static str,
        summary: &'static str,
        default: f64,
        least: f64,
        most: f64,
    ) -> Parameter {
        Parameter { letter, summary, default, least, most, is_whole: false }
    }

    const fn whole(
        letter: &'static str,
        summary: &'static str,
        default: f64,
        least: f64,
        most: f64,
    ) -> Parameter {
        Parameter { is_whole: true, ..Parameter::real(letter, summary, default, least, most) }
    }
}

/// An order in the list of them all.
#[derive(Clone, Copy, Debug)]
pub struct Entry {
    /// Its name on the command line and in files.
    pub name: &'static str,
    /// Its policy, in one line.
    pub summary: &'static str,
    /// What it may use.
    pub knowledge: Knowledge,
    /// Its parameters.
    pub parameters: &'static [Parameter],
    /// Where it was described.
    pub source: &'static str,
    /// Builds it from a value for each parameter.
    make: fn(&[f64]) -> BuiltIn,
}

impl Entry {
    /// The order, with the defaults of its parameters.
    pub fn order(&self) -> BuiltIn {
        (self.make)(&self.defaults())
    }

    fn defaults(&self) -> [f64; text::MOST_PARAMETERS] {
        std::array::from_fn(|index| self.parameters.get(index).map_or(0.0, |parameter| parameter.default))
    }

    /// How it is written with its parameters: `vr(R)`.
    pub fn form(&self) -> String {
        let letters: Vec<&str> = self.parameters.iter().map(|parameter| parameter.letter).collect();
        if letters.is_empty() {
            self.name.to_string()
        } else {
            format!("{}({})", self.name, letters.join(", "))
        }
    }
}

// The types of all orders. A new one needs a line `mod`, its type here and its entry in `all`.
built_in::built_in! {
    asptf::Asptf, c_look::BatchedCLook, bounded::Bounded, c_look::CLook, c_scan::CScan, edf::Edf,
    fcfs::Fcfs, fscan::Fscan, gstf::Gstf, look::Look, n_step::NStep, p_scan::PScan,
    reads_first::ReadsFirst, scan::Scan, scan_edf::ScanEdf, spctf::Spctf, sptf::Sptf, sstf::Sstf, vr::Vr,
    wstf::Wstf, c_look::ZonedCLook,
}

/// All orders.
pub fn all() -> &'static [Entry] {
    &[
        fcfs::ENTRY,
        sstf::LBN,
        sstf::CYLINDER,
        scan::LBN,
        scan::CYLINDER,
        c_scan::LBN,
        c_scan::CYLINDER,
        look::LBN,
        look::CYLINDER,
        c_look::LBN,
        c_look::CYLINDER,
        c_look::BATCHED,
        c_look::ZONED,
        vr::ENTRY,
        n_step::ENTRY,
        fscan::ENTRY,
        sptf::ENTRY,
        gstf::ENTRY,
        gstf::FROZEN,
        wstf::ENTRY,
        asptf::ENTRY,
        bounded::ENTRY,
        spctf::ENTRY,
        spctf::AGED,
        edf::ENTRY,
        scan_edf::ENTRY,
        p_scan::ENTRY,
        reads_first::FCFS,
        reads_first::C_LOOK,
        reads_first::SPTF,
    ]
}
