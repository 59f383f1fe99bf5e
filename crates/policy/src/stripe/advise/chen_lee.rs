//! Chen and Lee's rules for RAID-5.
//!
//! Reads want the unit of an array without parity ([`super::chen_patterson`]). Writes want a smaller one, because a write
//! of a whole stripe needs no old data: about a quarter of it at 16 disks.
//!
//! *Source:* Chen and Lee, "Striping in a RAID level 5 disk array", 1995, as described by Chen, Lee, Gibson, Katz and Patterson
//! in "RAID: high-performance, reliable secondary storage", 1994, section 4.4.

use super::{Entry, chen_patterson};

pub(super) const ANY: Entry = Entry {
    name: "chen-lee",
    summary: "1/2·P·X, for RAID-5",
    source: "Chen and Lee 1995",
    advise: |question| question.disk.reach() / 2.0,
};

pub(super) const WRITES: Entry = Entry {
    name: "chen-lee-writes",
    summary: "1/4 of chen-patterson, for RAID-5 of 16 disks, mostly writes",
    source: "Chen and Lee 1995",
    advise: |question| chen_patterson::known_load(question) / 4.0,
};
