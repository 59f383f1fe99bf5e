//! The client's side of the protocol: choosing an export, requests and replies.
//!
//! It uses fixed newstyle with simple replies, which is all that a probe needs; no TLS, no structured replies. The caller owns
//! the sockets.
//!
//! *Source:* "The NBD protocol", doc/proto.md of the NetworkBlockDevice project.

use super::proto::{self, Fields};
use super::{BlockSizes, Export};
use std::io::{self, Read, Write};

/// Why there is no export.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs, reason = "the names of the fields say it")]
pub enum ClientError {
    /// The connection failed.
    #[error("{0}")]
    Io(#[from] io::Error),
    /// The server uses another protocol.
    #[error("{what} {met:#x} does not belong to the NBD protocol (newstyle); is the server an NBD server?")]
    Magic { what: &'static str, met: u64 },
    /// The server refuses the export.
    #[error("the server refuses export `{export}`: {message}")]
    Refused { export: String, message: String },
    /// The server sends replies without end.
    #[error("the server tells {reported} things of export `{export}` and comes to no end")]
    Endless { export: String, reported: usize },
}

/// Longest message in bytes that a server may send before the transmission.
const MOST: u32 = 64 << 10;
/// Number of messages that a server may send before the transmission; more than there are kinds of them.
const MOST_REPLIES: usize = 64;

/// Errors that carry no message.
const REFUSALS: [(u32, &str); 4] = [
    (proto::REP_ERR_UNSUP, "it does not know NBD_OPT_GO"),
    (proto::REP_ERR_POLICY, "it is not for this client"),
    (proto::REP_ERR_TLS_REQD, "it wants TLS, which is not spoken here"),
    (proto::REP_ERR_UNKNOWN, "there is none of that name"),
];

fn read_array<const N: usize>(from: &mut impl Read) -> io::Result<[u8; N]> {
    let mut bytes = [0; N];
    from.read_exact(&mut bytes)?;
    Ok(bytes)
}

/// Chooses an export by name (an empty name is the first), and returns its properties.
///
/// *Errors:* the connection fails, or the server uses another protocol or refuses.
pub fn choose(stream: &mut (impl Read + Write), name: &str) -> Result<Export, ClientError> {
    for (what, magic) in ["greeting", "kind of handshake"].into_iter().zip(proto::GREETING) {
        let met = u64::from_be_bytes(read_array(stream)?);
        if met != magic {
            return Err(ClientError::Magic { what, met });
        }
    }
    read_array::<2>(stream)?;
    let flags = u32::from(proto::FIXED_NEWSTYLE | proto::NO_ZEROES);
    let asked = [proto::INFO_NAME, proto::INFO_DESCRIPTION, proto::INFO_BLOCK_SIZE];
    let length = u32::try_from(name.len()).map_err(io::Error::other)?;
    let mut said = flags.to_be_bytes().to_vec();
    said.extend(proto::OPTION_MAGIC.to_be_bytes());
    said.extend(proto::OPT_GO.to_be_bytes());
    said.extend((length + 6 + 2 * asked.len() as u32).to_be_bytes());
    said.extend(length.to_be_bytes());
    said.extend(name.as_bytes());
    said.extend((asked.len() as u16).to_be_bytes());
    asked.iter().for_each(|item| said.extend(item.to_be_bytes()));
    stream.write_all(&said)?;
    // What the server does not announce is not served.
    let mut export = Export {
        read_only: true,
        rotational: false,
        flush: false,
        fua: false,
        trim: false,
        write_zeroes: false,
        multi_conn: false,
        cache: false,
        ..Export::new(name, 0)
    };
    for _ in 0..MOST_REPLIES {
        let (kind, data) = option_reply(stream)?;
        match kind {
            proto::REP_ACK => return Ok(export),
            proto::REP_INFO => inform(&mut export, &data),
            _ if kind >> 31 == 1 => {
                let reported = String::from_utf8_lossy(&data).into_owned();
                let known = REFUSALS.iter().find(|(refusal, _)| *refusal == kind);
                let known = known.map_or_else(|| format!("{kind:#x}"), |(_, words)| words.to_string());
                let message = if reported.is_empty() { known } else { reported };
                return Err(ClientError::Refused { export: name.to_string(), message });
            }
            _ => {}
        }
    }
    Err(ClientError::Endless { export: name.to_string(), reported: MOST_REPLIES })
}

fn option_reply(stream: &mut impl Read) -> Result<(u32, Vec<u8>), ClientError> {
    let met = u64::from_be_bytes(read_array(stream)?);
    if met != proto::OPTION_REPLY_MAGIC {
        return Err(ClientError::Magic { what: "reply to an option", met });
    }
    let _option = read_array::<4>(stream)?;
    let (kind, length) = (u32::from_be_bytes(read_array(stream)?), u32::from_be_bytes(read_array(stream)?));
    if length > MOST {
        return Err(ClientError::Magic { what: "length", met: length.into() });
    }
    let mut data = vec![0; length as usize];
    stream.read_exact(&mut data)?;
    Ok((kind, data))
}

/// Stores the announced properties; ignores data that are too short.
fn inform(export: &mut Export, data: &[u8]) {
    let mut fields = Fields(data);
    match fields.u16() {
        Some(proto::INFO_EXPORT) => {
            let (Some(bytes), Some(flags)) = (fields.u64(), fields.u16()) else { return };
            export.bytes = bytes;
            let has = |flag: u16| flags & flag != 0;
            export.read_only = has(proto::EXPORT_READ_ONLY);
            export.rotational = has(proto::EXPORT_ROTATIONAL);
            export.flush = has(proto::EXPORT_SEND_FLUSH);
            export.fua = has(proto::EXPORT_SEND_FUA);
        }
        Some(proto::INFO_NAME) => export.name = String::from_utf8_lossy(fields.0).into_owned(),
        Some(proto::INFO_DESCRIPTION) => {
            export.description = String::from_utf8_lossy(fields.0).into_owned();
        }
        Some(proto::INFO_BLOCK_SIZE) => {
            if let (Some(minimum), Some(preferred), Some(maximum)) =
                (fields.u32(), fields.u32(), fields.u32())
            {
                export.blocks = BlockSizes { minimum, preferred, maximum };
            }
        }
        _ => {}
    }
}

/// A request to the export. Offsets and lengths are in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Command {
    /// Read, with FUA if `true`.
    Read(u64, u32, bool),
    /// Write the data that follow, with FUA if `true`.
    Write(u64, u32, bool),
    /// Write all dirty data to the media.
    Flush,
}

/// The bytes of a request, without the data of a write.
pub fn request(cookie: u64, command: Command) -> [u8; 28] {
    let (number, offset, length, fua) = match command {
        Command::Read(offset, length, fua) => (proto::CMD_READ, offset, length, fua),
        Command::Write(offset, length, fua) => (proto::CMD_WRITE, offset, length, fua),
        Command::Flush => (proto::CMD_FLUSH, 0, 0, false),
    };
    let mut bytes = [0; 28];
    bytes[..4].copy_from_slice(&proto::REQUEST_MAGIC.to_be_bytes());
    bytes[4..6].copy_from_slice(&(if fua { proto::FLAG_FUA } else { 0 }).to_be_bytes());
    bytes[6..8].copy_from_slice(&number.to_be_bytes());
    bytes[8..16].copy_from_slice(&cookie.to_be_bytes());
    bytes[16..24].copy_from_slice(&offset.to_be_bytes());
    bytes[24..].copy_from_slice(&length.to_be_bytes());
    bytes
}

/// Receives the header of a reply: the request's cookie, and its error, 0 if none. The data follow the header of a successful
/// read.
///
/// *Errors:* the connection fails, or something else arrives.
pub fn reply(stream: &mut impl Read) -> Result<(u64, u32), ClientError> {
    let head = read_array::<16>(stream)?;
    let mut fields = Fields(&head);
    let all = (fields.u32(), fields.u32(), fields.u64());
    let (Some(magic), Some(error), Some(cookie)) = all else { unreachable!("sixteen bytes are all three") };
    match magic {
        proto::SIMPLE_REPLY_MAGIC => Ok((cookie, error)),
        met => Err(ClientError::Magic { what: "reply", met: met.into() }),
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Exports, Handshake, Limits, Wire};
    use super::*;
    use headstack_model::Instant;

    struct Server(Handshake);

    impl Read for Server {
        fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
            let output = self.0.output();
            let count = into.len().min(output.len());
            into[..count].copy_from_slice(&output[..count]);
            self.0.sent(Instant::ZERO, count);
            Ok(count)
        }
    }

    impl Write for Server {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            let space = self.0.input_space();
            let count = bytes.len().min(space.len());
            space[..count].copy_from_slice(&bytes[..count]);
            self.0.filled(Instant::ZERO, count);
            Ok(count)
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    fn server() -> Server {
        let mut tape = Export { read_only: true, ..Export::new("tape", 1 << 20) };
        (tape.fua, tape.description) = (false, "a tape".to_string());
        tape.blocks.minimum = 4096;
        let exports = Exports::new(vec![Export::new("disk", 1 << 30), tape]).expect("these can be exported");
        Server(Handshake::new(exports, Limits::default(), Instant::ZERO))
    }

    #[test]
    fn chosen_export_is_described() {
        let disk = choose(&mut server(), "").expect("the first is chosen");
        assert_eq!((disk.name.as_str(), disk.bytes, disk.blocks.minimum), ("disk", 1 << 30, 512));
        assert!(disk.rotational && disk.flush && disk.fua && !disk.read_only);
        let tape = choose(&mut server(), "tape").expect("it is there");
        assert_eq!((tape.description.as_str(), tape.blocks.minimum), ("a tape", 4096));
        assert!(tape.read_only && !tape.fua);
    }

    #[test]
    fn export_rejection_carries_the_server_message() {
        let error = choose(&mut server(), "disc").expect_err("there is none").to_string();
        assert!(error.starts_with("the server refuses export `disc`: no export `disc`"), "{error}");
        let mut other = io::Cursor::new(b"SSH-2.0-OpenSSH_9.2p1 Debian".to_vec());
        let error = choose(&mut other, "").expect_err("it is another protocol").to_string();
        assert!(error.ends_with("is the server an NBD server?"), "{error}");
        let mut short = io::Cursor::new(b"NBDMAGIC".to_vec());
        assert!(matches!(choose(&mut short, ""), Err(ClientError::Io(_))));
    }

    /// A server that repeats the same message.
    struct Endless {
        greeting: io::Cursor<Vec<u8>>,
        said: Vec<u8>,
        at: usize,
    }

    impl Read for Endless {
        fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
            let count = self.greeting.read(into)?;
            if count > 0 {
                return Ok(count);
            }
            let count = into.len().min(self.said.len() - self.at);
            into[..count].copy_from_slice(&self.said[self.at..self.at + count]);
            self.at = (self.at + count) % self.said.len();
            Ok(count)
        }
    }

    impl Write for Endless {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn endless_server_reply_is_rejected() {
        let words = proto::GREETING.iter().flat_map(|word| word.to_be_bytes());
        let greeting = words.chain(proto::FIXED_NEWSTYLE.to_be_bytes()).collect();
        let mut said = proto::OPTION_REPLY_MAGIC.to_be_bytes().to_vec();
        for word in [proto::OPT_GO, proto::REP_INFO, 2] {
            said.extend(word.to_be_bytes());
        }
        said.extend(99u16.to_be_bytes());
        let mut server = Endless { greeting: io::Cursor::new(greeting), said, at: 0 };
        let error = choose(&mut server, "tape").expect_err("it never ends").to_string();
        assert_eq!(error, "the server tells 64 things of export `tape` and comes to no end");
    }

    #[test]
    fn malformed_reply_is_rejected() {
        let bytes = [&0x6744_6698u32.to_be_bytes()[..], &5u32.to_be_bytes(), &9u64.to_be_bytes()].concat();
        assert_eq!(reply(&mut bytes.as_slice()).expect("it is one"), (9, 5));
        assert!(matches!(
            reply(&mut [0u8; 16].as_slice()),
            Err(ClientError::Magic { what: "reply", met: 0 })
        ));
        assert!(matches!(reply(&mut &bytes[..15]), Err(ClientError::Io(_))));
    }
}
