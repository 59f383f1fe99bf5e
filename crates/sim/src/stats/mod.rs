//! What is said of many response times: their distribution, and how far two distributions are apart.

mod agreement;
pub mod demerit;
mod histogram;

pub use agreement::{Agreement, ClassAgreement, Pair};
pub use histogram::TimeHistogram;
