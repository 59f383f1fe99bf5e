//! What a job reads back of what it wrote: `verify`.

use crate::fio::value::{Given, Parsed};

/// The methods of `verify`. All of them read the same; `null` reads and checks nothing.
const METHODS: [(&str, bool); 20] = [
    ("0", false),
    ("md5", true),
    ("crc64", true),
    ("crc32", true),
    ("crc32c-intel", true),
    ("crc32c", true),
    ("crc16", true),
    ("crc7", true),
    ("sha1", true),
    ("sha256", true),
    ("sha512", true),
    ("sha3-224", true),
    ("sha3-256", true),
    ("sha3-384", true),
    ("sha3-512", true),
    ("xxhash", true),
    ("meta", true),
    ("pattern", true),
    ("pattern_hdr", true),
    ("null", true),
];

/// What of the written data is read again, and when. The data themselves are not compared.
#[derive(Clone, Copy, Debug)]
pub(in crate::fio) struct VerifyRules {
    /// Whether there is a method.
    pub(in crate::fio) has_method: bool,
    /// `do_verify`: whether the job itself reads what it wrote.
    pub(in crate::fio) reads: bool,
    /// `verify_only`: the writes are those of an earlier run and are not issued.
    pub(in crate::fio) only: bool,
    /// `experimental_verify`: the pass is read as it was written, its repeated writes too.
    pub(in crate::fio) replays: bool,
    /// Written requests after which some of them are read; 0 for none before the end of the pass.
    pub(in crate::fio) backlog: u64,
    /// How many are read then; 0 for `backlog`.
    pub(in crate::fio) batch: u64,
}

impl Default for VerifyRules {
    fn default() -> VerifyRules {
        let (has_method, reads, only, replays) = (false, true, false, false);
        VerifyRules { has_method, reads, only, replays, backlog: 0, batch: 0 }
    }
}

impl VerifyRules {
    /// Whether `verify` names a method.
    pub(in crate::fio) fn method(given: &Given<'_>) -> Parsed<bool> {
        given.word(&METHODS)
    }
}
