//! Lee and Katz's rule: the unit at which the transfer time saved equals the positioning time lost.
//!
//! At a concurrency of 1 the formula gives 0: spread each request over all disks.
//!
//! *Source:* Lee and Katz, "An analytic performance model of disk arrays", 1993, as described by Chen, Lee, Gibson, Katz and Patterson
//! in "RAID: high-performance, reliable secondary storage", 1994, section 4.4.

use super::{Entry, Question};

pub(super) const ENTRY: Entry = Entry {
    name: "lee-katz",
    summary: "√(P·X·(L − 1)·Z / N)",
    source: "Lee and Katz 1993",
    advise: |question| {
        let Question { disk, disks, request_sectors, .. } = question;
        (disk.reach() * question.others() * request_sectors / f64::from(*disks)).sqrt()
    },
};
