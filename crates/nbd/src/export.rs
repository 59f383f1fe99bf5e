//! The exports of a server, and how they are announced.

use std::sync::Arc;

use super::access::Allow;
use super::proto::{self, NAME_BYTES};

/// Block sizes that clients must comply with, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BlockSizes {
    /// Offsets and lengths are multiples of it.
    pub minimum: u32,
    /// Multiples of it are fast.
    pub preferred: u32,
    /// Maximum bytes of a read or write.
    pub maximum: u32,
}

/// A disk that clients can choose.
#[derive(Clone, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "the names of the fields say it")]
pub struct Export {
    pub name: String,
    pub description: String,
    /// Its size, in whole minimum blocks.
    pub bytes: u64,
    /// Its block sizes.
    pub blocks: BlockSizes,
    pub read_only: bool,
    pub rotational: bool,
    pub flush: bool,
    pub fua: bool,
    pub trim: bool,
    /// Whether WRITE_ZEROES is supported.
    pub write_zeroes: bool,
    /// Whether all connections see one cache, so that a FLUSH by one holds for all.
    pub multi_conn: bool,
    pub cache: bool,
    /// Who may use it: a client that matches any of these, or all if it is empty.
    pub allow: Vec<Allow>,
}

impl Export {
    /// An export with all features, blocks of 512 bytes and transfers of up to 32 MiB.
    pub fn new(name: &str, bytes: u64) -> Export {
        Export {
            name: name.to_string(),
            description: String::new(),
            bytes,
            blocks: BlockSizes { minimum: 512, preferred: 4096, maximum: 32 << 20 },
            read_only: false,
            rotational: true,
            flush: true,
            fua: true,
            trim: true,
            write_zeroes: true,
            multi_conn: true,
            cache: true,
            allow: Vec::new(),
        }
    }

    /// The transmission flags.
    pub(super) fn flags(&self, structured: bool) -> u16 {
        let pairs = [
            (true, proto::EXPORT_HAS_FLAGS),
            (self.read_only, proto::EXPORT_READ_ONLY),
            (self.flush, proto::EXPORT_SEND_FLUSH),
            (self.fua, proto::EXPORT_SEND_FUA),
            (self.rotational, proto::EXPORT_ROTATIONAL),
            (self.trim, proto::EXPORT_SEND_TRIM),
            (self.write_zeroes, proto::EXPORT_SEND_WRITE_ZEROES | proto::EXPORT_SEND_FAST_ZERO),
            (structured, proto::EXPORT_SEND_DF),
            (self.multi_conn, proto::EXPORT_CAN_MULTI_CONN),
            (self.cache, proto::EXPORT_SEND_CACHE),
        ];
        pairs.iter().filter(|(set, _)| *set).fold(0, |flags, (_, flag)| flags | flag)
    }

    fn check(&self) -> Result<(), ExportError> {
        let name = || self.name.clone();
        for (what, text) in [("name", &self.name), ("description", &self.description)] {
            if text.len() > NAME_BYTES || text.contains('\0') {
                return Err(ExportError::Text { what, bytes: text.len(), allowed: NAME_BYTES });
            }
        }
        let BlockSizes { minimum, preferred, maximum } = self.blocks;
        if !minimum.is_power_of_two() || minimum > 1 << 16 {
            return Err(ExportError::Minimum { name: name(), met: minimum });
        }
        if !preferred.is_power_of_two() || preferred < minimum.max(512) {
            return Err(ExportError::Preferred { name: name(), met: preferred, least: minimum.max(512) });
        }
        if !maximum.is_multiple_of(minimum) || u64::from(maximum) < u64::from(preferred).min(self.bytes) {
            return Err(ExportError::Maximum { name: name(), met: maximum, minimum });
        }
        if !self.bytes.is_multiple_of(u64::from(minimum)) {
            return Err(ExportError::Size { name: name(), met: self.bytes, minimum });
        }
        Ok(())
    }
}

/// A server's exports; the first is the default. A clone shares them.
#[derive(Clone, Debug)]
pub struct Exports(Arc<[Export]>);

impl Exports {
    /// Combines exports.
    ///
    /// *Errors:* there is none, two have the same name, or one breaks a limit of the protocol.
    pub fn new(exports: Vec<Export>) -> Result<Exports, ExportError> {
        if exports.is_empty() {
            return Err(ExportError::None);
        }
        for (index, export) in exports.iter().enumerate() {
            export.check()?;
            if exports[..index].iter().any(|other| other.name == export.name) {
                return Err(ExportError::Twice { name: export.name.clone() });
            }
        }
        Ok(Exports(exports.into()))
    }

    /// All exports, in order.
    pub fn all(&self) -> &[Export] {
        &self.0
    }
}

/// What is wrong with the exports.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[allow(missing_docs, reason = "the names of the fields say it")]
pub enum ExportError {
    /// There is none.
    #[error("there is nothing to export")]
    None,
    /// Two have the same name.
    #[error("two exports are named `{name}`")]
    Twice { name: String },
    /// A text longer than the protocol allows.
    #[error("an export's {what} of {bytes} bytes: at most {allowed} are allowed, none of them zero")]
    Text { what: &'static str, bytes: usize, allowed: usize },
    /// A minimum block size that the protocol does not allow.
    #[error("export `{name}`: minimum block size {met}; it must be a power of two from 1 to 65536")]
    Minimum { name: String, met: u32 },
    /// A preferred block size that the protocol does not allow.
    #[error("export `{name}`: preferred block size {met}; it must be a power of two and at least {least}")]
    Preferred { name: String, met: u32, least: u32 },
    /// A maximum that the protocol does not allow.
    #[error(
        "export `{name}`: at most {met} bytes a transfer; it must be a multiple of {minimum} and no less than the \
         preferred block size, or the export's if that is less"
    )]
    Maximum { name: String, met: u32, minimum: u32 },
    /// A size that is no whole number of blocks.
    #[error("export `{name}`: {met} bytes are not a multiple of its minimum block size {minimum}")]
    Size { name: String, met: u64, minimum: u32 },
}
