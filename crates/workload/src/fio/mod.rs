//! fio job files: the language for synthetic load.
//!
//! The same file runs under fio against a real disk and here in virtual time. A [`JobFile`] is the parsed text: each key is
//! either honoured, or ignored and listed, or refused with a reason ([`options()`]). Built for the volumes of a rig, it
//! becomes a [`FioLoad`].
//!
//! Modelled: which requests fio makes, in which order and how many at a time, its rates, pauses, passes and groups. For
//! `rw=read` and `rw=write` these are exactly fio's offsets and sizes; otherwise counts, mixes and sizes agree, but random
//! draws differ. Not modelled: the time fio itself needs, what it writes, and checks of what it reads.
//!
//! *Source:* fio 3.33 and its HOWTO; `docs/formats/fio-jobs.md` lists every key.

mod build;
mod dice;
mod engine;
mod error;
mod extent;
mod file;
mod flow;
mod ini;
mod job;
mod layout;
mod load;
mod logged;
mod map;
mod options;
mod own;
mod pace;
mod process;
mod request;
mod service;
mod settings;
mod sizes;
mod spread;
mod steady;
mod strided;
mod value;
mod variables;
mod zone_build;
mod zoned;

pub use build::OpenLog;
pub use job::{IgnoredKey, JobFile};
pub use load::{FioFile, FioJob, FioLoad, FioWindow};
pub use options::{FioOption, Role, Setter, ValueKind, options};
pub use own::{OwnKey, own_keys};
pub use variables::Variables;
