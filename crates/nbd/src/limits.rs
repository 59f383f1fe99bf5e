//! Limits of memory and time of a connection, and how it ends.

use headstack_model::Nanos;

/// Limits of memory and time of one connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Time from the greeting to the choice of an export.
    pub handshake: Nanos,
    /// Time from a request's first byte to its last, while the server reads.
    pub request: Nanos,
    /// Time between bytes of a reply that the client receives.
    pub reply: Nanos,
    /// Longest option data in bytes; longer data are skipped.
    pub option_bytes: u32,
    /// Maximum number of options before an export is chosen.
    pub options: u32,
    /// Maximum number of queries for metadata contexts in one option.
    pub queries: u32,
    /// Maximum number of requests at the disk.
    pub requests: usize,
    /// Maximum bytes of writes and reads at the disk, and of unsent replies. A request waits until it fits, but a single one
    /// always does.
    pub held_bytes: usize,
    /// Longest payload in bytes of a refused write that is skipped. A longer one ends the connection.
    pub payload_bytes: u32,
    /// Maximum number of extents in a block status reply.
    pub extents: usize,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits {
            handshake: Nanos::from_secs(10),
            request: Nanos::from_secs(30),
            reply: Nanos::from_secs(30),
            option_bytes: 32 << 10,
            options: 128,
            queries: 64,
            requests: 1024,
            held_bytes: 64 << 20,
            payload_bytes: 64 << 20,
            extents: 8192,
        }
    }
}

/// Why a connection ends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ending {
    /// The client sent a disconnect. Pending requests are still answered.
    Disconnected,
    /// The client closed its side. Pending requests are still answered.
    HungUp,
    /// The client broke the protocol: the connection is closed at once.
    Broken(Breach),
}

/// The breach of protocol that ends a connection.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[allow(missing_docs, reason = "the names of the fields say it")]
pub enum Breach {
    /// Flags that the server did not offer.
    #[error("client flags {met:#x}, where bits 0 and 1 are allowed")]
    ClientFlags { met: u32 },
    /// An option without the magic number.
    #[error("an option begins with {met:#018x}, not with the magic number of options")]
    OptionMagic {
        /// Its first eight bytes.
        met: u64,
    },
    /// An option other than the choice of an export, from a client of the old newstyle handshake.
    #[error("option {met} from a client without the fixed newstyle handshake, which allows option 1 alone")]
    OptionBeforeFixed { met: u32 },
    /// The choice of an unknown export by `EXPORT_NAME`, which has no error reply.
    #[error("no export `{met}`{hint}")]
    UnknownExport {
        met: String,
        /// End of the message: the nearest known name.
        hint: String,
    },
    /// The choice of an export by a name that is too long, by `EXPORT_NAME`.
    #[error("an export's name of {bytes} bytes, where {allowed} are allowed")]
    LongName { bytes: u32, allowed: u32 },
    /// Too many options before the choice.
    #[error("more than {allowed} options")]
    Options { allowed: u32 },
    /// The choice of an export by `EXPORT_NAME` without TLS, where TLS is required.
    #[error("an export chosen without TLS, which must come first")]
    TlsRequired,
    /// Bytes sent after STARTTLS and before its reply: they are not protected by TLS, so anyone may have sent them.
    #[error("{bytes} bytes between the wish for TLS and its beginning")]
    BeforeTls { bytes: usize },
    /// TLS failed.
    #[error("TLS: {error}")]
    Tls { error: String },
    /// The choice by `EXPORT_NAME` of an export whose guarantee the disk cannot keep.
    #[error("no room for one client more: {message}")]
    Full { message: String },
    /// A request without the magic number.
    #[error("a request begins with {met:#010x}, not with the magic number of requests")]
    RequestMagic {
        /// Its first four bytes.
        met: u32,
    },
    /// A write with more payload than is skipped.
    #[error("a write of {bytes} bytes, where {allowed} are allowed")]
    /// Bytes of the payload.
    Payload { bytes: u32, allowed: u32 },
    /// No export chosen in time.
    #[error("no export chosen in time")]
    SlowHandshake,
    /// A request was not completed in time.
    #[error("a request was not completed in time")]
    SlowRequest,
    /// The system has no memory for a reply.
    #[error("the machine has no memory left for it")]
    NoMemory,
    /// Replies were not received in time.
    #[error("replies were not taken in time")]
    SlowReader,
}
