//! What a client may ask of a server's memory and patience, and how a connection ends.

use headstack_model::Nanos;

/// What one connection may hold and how long it may take.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Limits {
    /// From the greeting to the choice of an export.
    pub handshake: Nanos,
    /// From a request's first byte to its last, while the server reads.
    pub request: Nanos,
    /// From one byte of a reply that the client takes to the next.
    pub reply: Nanos,
    /// Longest option whose data are kept. The data of a longer one are passed over.
    pub option_bytes: u32,
    /// Options before an export is chosen.
    pub options: u32,
    /// Queries for metadata contexts in one option.
    pub queries: u32,
    /// Requests that are with the disk at a time.
    pub requests: usize,
    /// Bytes of writes and reads that are with the disk, and of replies that the client has not taken. A request waits
    /// until it fits, but a single one always does.
    pub held_bytes: usize,
    /// Longest payload of a refused write that is passed over. A longer one ends the connection.
    pub payload_bytes: u32,
    /// Stretches told of in one reply to a question for the allocation.
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
    /// The client took its leave by the protocol. What is under way is still answered.
    Disconnected,
    /// The client sends no more. What is under way is still answered.
    HungUp,
    /// The client did what no answer mends: the connection is closed at once.
    Broken(Breach),
}

/// What a client did that ends its connection.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[allow(missing_docs, reason = "the names of the fields say it")]
pub enum Breach {
    /// Flags that the server did not offer.
    #[error("client flags {met:#x}, where bits 0 and 1 are allowed")]
    ClientFlags { met: u32 },
    /// What should be an option is none.
    #[error("an option begins with {met:#018x}, not with the magic number of options")]
    OptionMagic {
        /// Its first eight bytes.
        met: u64,
    },
    /// Anything but the choice of an export, from a client of the old newstyle handshake.
    #[error("option {met} from a client without the fixed newstyle handshake, which allows option 1 alone")]
    OptionBeforeFixed { met: u32 },
    /// The choice of an export that is not there, in the form that has no answer for it.
    #[error("no export `{met}`{hint}")]
    UnknownExport {
        met: String,
        /// The end of the message: the nearest known name.
        hint: String,
    },
    /// The choice of an export by a name too long to be looked at, in the form that has no answer for it.
    #[error("an export's name of {bytes} bytes, where {allowed} are allowed")]
    LongName { bytes: u32, allowed: u32 },
    /// Option after option, and no choice.
    #[error("more than {allowed} options")]
    Options { allowed: u32 },
    /// The choice of an export as it is, in the form that has no answer, where TLS must come first.
    #[error("an export chosen without TLS, which must come first")]
    TlsRequired,
    /// Bytes sent after the wish for TLS, before it was granted: they are not within it, whoever sent them.
    #[error("{bytes} bytes between the wish for TLS and its beginning")]
    BeforeTls { bytes: usize },
    /// TLS failed.
    #[error("TLS: {error}")]
    Tls { error: String },
    /// The choice of an export that promises more than its disk can keep, in the form that has no answer for it.
    #[error("no room for one client more: {message}")]
    Full { message: String },
    /// What should be a request is none.
    #[error("a request begins with {met:#010x}, not with the magic number of requests")]
    RequestMagic {
        /// Its first four bytes.
        met: u32,
    },
    /// A write of more bytes than are even passed over.
    #[error("a write of {bytes} bytes, where {allowed} are allowed")]
    /// How many bytes the client was to send.
    Payload { bytes: u32, allowed: u32 },
    /// No export chosen in time.
    #[error("no export chosen in time")]
    SlowHandshake,
    /// A request begun, and not completed in time.
    #[error("a request was not completed in time")]
    SlowRequest,
    /// Replies not taken in time.
    #[error("replies were not taken in time")]
    SlowReader,
}
