//! A minimal NBD client that writes requests to a socket, so that a test decides which requests are in flight when it disconnects.
//!
//! *Source:* the NBD protocol, proto.md: newstyle handshake with OPT_GO, simple replies.

use std::io::{self, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

const REQUEST: u32 = 0x2560_9513;
const SIMPLE_REPLY: u32 = 0x6744_6698;
const OPTION_REPLY: u64 = 0x0003_e889_0455_65a9;
const READ: u16 = 0;
const WRITE: u16 = 1;
const FLUSH: u16 = 3;
const FUA: u16 = 1;

/// A connection in the protocol's transmission phase.
pub(crate) struct Client {
    stream: UnixStream,
    bytes: u64,
    cookie: u64,
}

/// A reply: the cookie of its request, and the protocol's error code, 0 for success.
pub(crate) struct Reply {
    pub(crate) cookie: u64,
    pub(crate) error: u32,
}

impl Client {
    /// Connects and selects the first export.
    pub(crate) fn connect(socket: &Path) -> io::Result<Client> {
        let stream = UnixStream::connect(socket)?;
        // If the server no longer answers, the test fails instead of hanging.
        stream.set_read_timeout(Some(Duration::from_secs(60)))?;
        let mut client = Client { stream, bytes: 0, cookie: 0 };
        client.take::<18>()?;
        // Client flags: C_FIXED_NEWSTYLE and C_NO_ZEROES.
        client.stream.write_all(&3u32.to_be_bytes())?;
        // OPT_GO: the length of the export's name, which is empty, and the number of information requests, which is 0.
        let go = [b"IHAVEOPT".as_slice(), &7u32.to_be_bytes(), &6u32.to_be_bytes(), &[0; 6]].concat();
        client.stream.write_all(&go)?;
        while client.option_reply()? != 1 {}
        Ok(client)
    }

    fn take<const COUNT: usize>(&mut self) -> io::Result<[u8; COUNT]> {
        let mut bytes = [0; COUNT];
        self.stream.read_exact(&mut bytes)?;
        Ok(bytes)
    }

    fn take_u32(&mut self) -> io::Result<u32> {
        Ok(u32::from_be_bytes(self.take()?))
    }

    fn take_u64(&mut self) -> io::Result<u64> {
        Ok(u64::from_be_bytes(self.take()?))
    }

    /// Reads a reply to an option and returns its kind. Stores the size of the disk if the reply has it.
    fn option_reply(&mut self) -> io::Result<u32> {
        let (magic, _) = (self.take_u64()?, self.take_u32()?);
        let (kind, length) = (self.take_u32()?, self.take_u32()?);
        let mut data = vec![0; length as usize];
        self.stream.read_exact(&mut data)?;
        if magic != OPTION_REPLY || kind >> 31 == 1 {
            return Err(io::Error::other(format!(
                "the server refuses: {kind:#x} {}",
                String::from_utf8_lossy(&data)
            )));
        }
        // NBD_INFO_EXPORT: its number (2 bytes), the size, the flags (2 bytes).
        if let (3, [0, 0, size @ .., _, _]) = (kind, data.as_slice()) {
            self.bytes = u64::from_be_bytes(size.try_into().map_err(io::Error::other)?);
        }
        Ok(kind)
    }

    /// The size of the disk in bytes.
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes
    }

    fn header(&mut self, flags: u16, kind: u16, offset: u64, length: u32) -> Vec<u8> {
        self.cookie += 1;
        let mut header = Vec::with_capacity(28);
        header.extend(REQUEST.to_be_bytes());
        header.extend(flags.to_be_bytes());
        header.extend(kind.to_be_bytes());
        header.extend(self.cookie.to_be_bytes());
        header.extend(offset.to_be_bytes());
        header.extend(length.to_be_bytes());
        header
    }

    /// Sends these bytes unchanged.
    pub(crate) fn send(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.stream.write_all(bytes)
    }

    /// Sends a read and does not wait for the reply. Returns its cookie.
    pub(crate) fn send_read(&mut self, offset: u64, length: u32) -> io::Result<u64> {
        self.send_command(READ, offset, length)
    }

    /// Sends a write and does not wait for the reply. Returns its cookie.
    pub(crate) fn send_write(&mut self, offset: u64, data: &[u8], fua: bool) -> io::Result<u64> {
        let length = u32::try_from(data.len()).map_err(io::Error::other)?;
        let mut request = self.header(if fua { FUA } else { 0 }, WRITE, offset, length);
        request.extend_from_slice(data);
        self.send(&request)?;
        Ok(self.cookie)
    }

    /// Sends a flush and does not wait for the reply. Returns its cookie.
    pub(crate) fn send_flush(&mut self) -> io::Result<u64> {
        self.send_command(FLUSH, 0, 0)
    }

    /// Sends a command without data and does not wait for the reply. Returns its cookie.
    pub(crate) fn send_command(&mut self, kind: u16, offset: u64, length: u32) -> io::Result<u64> {
        let header = self.header(0, kind, offset, length);
        self.send(&header)?;
        Ok(self.cookie)
    }

    /// Reads the head of the next reply. The data of a successful read follow it.
    pub(crate) fn reply(&mut self) -> io::Result<Reply> {
        let magic = self.take_u32()?;
        if magic != SIMPLE_REPLY {
            return Err(io::Error::other(format!("{magic:#x} begins no simple reply")));
        }
        Ok(Reply { error: self.take_u32()?, cookie: self.take_u64()? })
    }

    fn settle(&mut self, cookie: u64) -> io::Result<()> {
        let reply = self.reply()?;
        match (reply.cookie == cookie, reply.error) {
            (true, 0) => Ok(()),
            (true, error) => Err(io::Error::from_raw_os_error(error as i32)),
            (false, _) => Err(io::Error::other(format!("an answer to {}, not to {cookie}", reply.cookie))),
        }
    }

    /// Reads and waits for the data. No other request may be in flight.
    pub(crate) fn read(&mut self, offset: u64, length: u32) -> io::Result<Vec<u8>> {
        let cookie = self.send_read(offset, length)?;
        self.settle(cookie)?;
        let mut data = vec![0; length as usize];
        self.stream.read_exact(&mut data)?;
        Ok(data)
    }

    /// Writes and waits for the reply. No other request may be in flight.
    pub(crate) fn write(&mut self, offset: u64, data: &[u8], fua: bool) -> io::Result<()> {
        let cookie = self.send_write(offset, data, fua)?;
        self.settle(cookie)
    }

    /// Flushes and waits for the reply. No other request may be in flight.
    pub(crate) fn flush(&mut self) -> io::Result<()> {
        let cookie = self.send_flush()?;
        self.settle(cookie)
    }
}
