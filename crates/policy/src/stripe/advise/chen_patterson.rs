//! Chen and Patterson's rules: a unit that grows with the concurrency, or one for any load.
//!
//! Made for 16 disks with synchronised spindles, requests of 4 to 1,500 KB and 1 to 20 of them at once; within 5 % of the
//! best throughput there.
//!
//! *Source:* Chen and Patterson, "Maximizing performance in a striped disk array", 1990, as described by Chen, Lee, Gibson, Katz and
//! Patterson in "RAID: high-performance, reliable secondary storage", 1994, section 4.4.

use super::{Entry, Question};

/// The slope: additional positioning time times rate per additional concurrent request.
const SLOPE: f64 = 1.0 / 4.0;

pub(super) const KNOWN: Entry = Entry {
    name: "chen-patterson",
    summary: "1 sector + 1/4·P·X·(L − 1)",
    source: "Chen and Patterson 1990",
    advise: known_load,
};

pub(super) const UNKNOWN: Entry = Entry {
    name: "chen-patterson-any",
    summary: "2/3·P·X, where L is unknown",
    source: "Chen and Patterson 1990",
    advise: |question| 2.0 / 3.0 * question.disk.reach(),
};

/// The unit in sectors for a known concurrency.
pub(super) fn known_load(question: &Question<'_>) -> f64 {
    1.0 + SLOPE * question.disk.reach() * question.others()
}
