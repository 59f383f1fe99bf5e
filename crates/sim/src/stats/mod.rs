//! Statistics of requests: distributions of response times, means with confidence intervals, counts over time.
//!
//! A [`Collector`] sees every request of a run once, in constant memory; [`Agreement`] and [`demerit`] compare two distributions.

mod agreement;
mod batches;
mod collector;
pub mod demerit;
mod histogram;
mod sample;
mod sorted;
mod source;
mod student;
mod timeline;

pub use agreement::{Agreement, ClassAgreement, Pair};
pub use batches::{BATCHES, Batches, Confidence, Interval, PairedDifferences};
pub use collector::{Collector, Sampled, Totals, VolumeStats};
pub use demerit::exact_ms as demerit_ms;
pub use histogram::TimeHistogram;
pub use sample::Sample;
pub use sorted::SortedTimes;
pub use source::{Direction, Priority, Running, SourceStats, TimeClasses};
pub use timeline::{Bin, Timeline};
