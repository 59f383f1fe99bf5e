//! An NBD export that answers probes: one thread sends requests, another receives replies.

use super::{Opened, Options, Over, ProbeError, Task, TaskResult, physical_sectors, start, wait_until};
use crate::Clock;
use headstack_model::Instant;
use headstack_nbd::client::{self, ClientError, Command};
use headstack_nbd::{NbdServer, NbdUri};
use headstack_probe::{Answer, DiskInfo, Outcome, Probe, ProbeCommand};
use headstack_tracks::map::Identity;
use std::collections::BTreeMap;
use std::io::{self, ErrorKind, Read, Write};
use std::net::TcpStream;
use std::os::unix::net::UnixStream;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Duration;

/// Timeout of a server: longer than a disk's retries.
const SERVER_TIMEOUT: Duration = Duration::from_secs(120);

/// Largest minimum block size of a server, in bytes.
const MOST_BLOCK: u32 = 64 << 10;

/// A connection; each thread has a handle.
#[derive(Debug)]
enum Stream {
    Tcp(TcpStream),
    Unix(UnixStream),
}

impl Stream {
    fn connect(server: &NbdServer) -> io::Result<Stream> {
        match server {
            NbdServer::Tcp(host) => {
                #[allow(clippy::disallowed_methods, reason = "an export is reached over a socket")]
                let stream = TcpStream::connect(host)?;
                stream.set_nodelay(true)?;
                stream.set_read_timeout(Some(SERVER_TIMEOUT))?;
                stream.set_write_timeout(Some(SERVER_TIMEOUT))?;
                Ok(Stream::Tcp(stream))
            }
            NbdServer::Unix(path) => {
                let stream = UnixStream::connect(path)?;
                stream.set_read_timeout(Some(SERVER_TIMEOUT))?;
                stream.set_write_timeout(Some(SERVER_TIMEOUT))?;
                Ok(Stream::Unix(stream))
            }
        }
    }

    fn halves(self) -> io::Result<(Stream, Stream)> {
        Ok(match self {
            Stream::Tcp(stream) => (Stream::Tcp(stream.try_clone()?), Stream::Tcp(stream)),
            Stream::Unix(stream) => (Stream::Unix(stream.try_clone()?), Stream::Unix(stream)),
        })
    }

    fn shut(&self) {
        // It may have ended already.
        let _ = match self {
            Stream::Tcp(stream) => stream.shutdown(std::net::Shutdown::Both),
            Stream::Unix(stream) => stream.shutdown(std::net::Shutdown::Both),
        };
    }
}

impl Read for Stream {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        match self {
            Stream::Tcp(stream) => stream.read(into),
            Stream::Unix(stream) => stream.read(into),
        }
    }
}

impl Write for Stream {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Stream::Tcp(stream) => stream.write(bytes),
            Stream::Unix(stream) => stream.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

struct SentTask {
    task: Task,
    issued: Instant,
}

pub(super) fn connect(uri: &NbdUri, options: Options) -> Result<Opened, ProbeError> {
    let place = match &uri.server {
        NbdServer::Tcp(host) => format!("nbd://{host}/{}", uri.export),
        NbdServer::Unix(path) => format!("{} (export `{}`)", path.display(), uri.export),
    };
    let connected = Stream::connect(&uri.server);
    let stream = connected.map_err(|error| ProbeError::Nbd { uri: place.clone(), error: error.into() })?;
    talk(stream, place, &uri.export, options)
}

/// Negotiates the export, and starts the threads that send and receive.
fn talk(mut stream: Stream, place: String, export: &str, options: Options) -> Result<Opened, ProbeError> {
    let wrong = |error: ClientError| ProbeError::Nbd { uri: place.clone(), error: plain(error) };
    let export = client::choose(&mut stream, export).map_err(wrong)?;
    let name = if export.description.is_empty() { export.name.clone() } else { export.description.clone() };
    if options.writes && export.read_only {
        return Err(ProbeError::ReadOnly { name });
    }
    let block = block_bytes(export.blocks.minimum)?;
    let info = DiskInfo {
        sectors: export.bytes / u64::from(block),
        sector_bytes: block,
        physical_sectors: physical_sectors(options.physical_bytes.unwrap_or(block), block)?,
        depth: options.depth.unwrap_or(1),
        may_write: options.writes,
        translates: false,
    };
    let clock = Clock::new(1.0).expect("real time is a speed");
    let (asks, replies) = stream.halves().map_err(|error| wrong(error.into()))?;
    let (tasks, taken) = channel::<Task>();
    let (tell_sent, requested) = channel::<SentTask>();
    let (tell_over, over) = channel();
    let (tell, reported) = channel();
    let fua = export.fua;
    let lost = {
        let place = place.clone();
        move |error| ProbeError::Nbd { uri: place.clone(), error: plain(error) }
    };
    let (tell_lost, is_lost) = (tell_over.clone(), lost.clone());
    let fail = move |error: io::Error| {
        // Fails only if the receiver has ended.
        let _ = tell_lost.send(Err(is_lost(error.into())));
    };
    let sends = move || send(asks, &clock, &info, fua, (&taken, &tell_sent), fail);
    let receives = move || receive(replies, &clock, &info, &requested, &tell_over, lost);
    let thread = |error: io::Error| ProbeError::Nbd { uri: place.clone(), error: error.into() };
    let threads = vec![
        start("probe asks", options, tell.clone(), sends).map_err(thread)?,
        start("probe replies", options, tell, receives).map_err(thread)?,
    ];
    let is_real_time = reported.iter().take(2).all(|first| first);
    let identity = Identity { name: Some(name.clone()), ..info.identity() };
    let (to_media, flushes) = (fua, export.flush);
    Ok(Opened { info, identity, name, tasks, over, threads, is_real_time, to_media, flushes, clock })
}

/// Block size in bytes for a server with this minimum.
///
/// *Source:* "The NBD protocol", block size constraints: a power of two of at most 64 KiB.
fn block_bytes(minimum: u32) -> Result<u32, ProbeError> {
    let block = minimum.max(512);
    if block.is_power_of_two() && block <= MOST_BLOCK {
        Ok(block)
    } else {
        Err(ProbeError::Block { met: minimum })
    }
}

/// Sends each command at its time, until there are no more or the connection fails.
fn send(
    mut stream: Stream,
    clock: &Clock,
    info: &DiskInfo,
    fua: bool,
    (taken, tell): (&Receiver<Task>, &Sender<SentTask>),
    fail: impl Fn(io::Error),
) {
    let mut cookie = 0;
    let mut bytes = Vec::new();
    while let Ok(mut task) = taken.recv() {
        let (offset, length) = byte_range(&task.probe.command, info);
        let command = match task.probe.command {
            ProbeCommand::Write { to_media, .. } => Command::Write(offset, length, to_media && fua),
            ProbeCommand::Flush => Command::Flush,
            ProbeCommand::Read { from_media, .. } => Command::Read(offset, length, from_media && fua),
            _ => unreachable!("others are refused before"),
        };
        bytes.clear();
        bytes.extend(client::request(cookie, command));
        bytes.append(&mut task.data);
        cookie += 1;
        wait_until(clock, task.probe.at);
        // The receiver has to know of it before the reply can come.
        let requested = SentTask { task, issued: clock.now() };
        if tell.send(requested).is_err() {
            break;
        }
        if let Err(error) = stream.write_all(&bytes) {
            // Reported before the receiver meets the end of the connection.
            fail(error);
            break;
        }
    }
    stream.shut();
}

fn plain(error: ClientError) -> ClientError {
    let ClientError::Io(error) = error else { return error };
    let words = match error.kind() {
        ErrorKind::WouldBlock | ErrorKind::TimedOut => {
            format!("the server has neither answered nor taken anything for {} s", SERVER_TIMEOUT.as_secs())
        }
        ErrorKind::UnexpectedEof | ErrorKind::BrokenPipe | ErrorKind::ConnectionReset => {
            "the server has closed the connection".to_string()
        }
        _ => return error.into(),
    };
    io::Error::new(error.kind(), words).into()
}

/// First byte and length of a command.
fn byte_range(command: &ProbeCommand, info: &DiskInfo) -> (u64, u32) {
    match command {
        ProbeCommand::Read { lbn, sectors, .. } | ProbeCommand::Write { lbn, sectors, .. } => {
            (lbn.0 * u64::from(info.sector_bytes), sectors * info.sector_bytes)
        }
        _ => (0, 0),
    }
}

fn receive(
    mut stream: Stream,
    clock: &Clock,
    info: &DiskInfo,
    requested: &Receiver<SentTask>,
    tell: &Sender<TaskResult>,
    lost: impl Fn(ClientError) -> ProbeError,
) {
    let mut waiting: BTreeMap<u64, SentTask> = BTreeMap::new();
    let mut next = 0;
    let mut data = Vec::new();
    loop {
        let head = client::reply(&mut stream);
        let ended = clock.now();
        for more in requested.try_iter() {
            waiting.insert(next, more);
            next += 1;
        }
        let over = head.and_then(|(cookie, error)| {
            let unknown = ClientError::Magic { what: "cookie", met: cookie };
            let SentTask { task, issued } = waiting.remove(&cookie).ok_or(unknown)?;
            if let (ProbeCommand::Read { .. }, 0) = (task.probe.command, error) {
                data.resize(byte_range(&task.probe.command, info).1 as usize, 0);
                stream.read_exact(&mut data)?;
            }
            Ok(over(task, Answer { issued, ended, outcome: outcome(error) }, &data))
        });
        let is_over = over.is_err();
        if tell.send(over.map_err(&lost)).is_err() || is_over {
            stream.shut();
            return;
        }
    }
}

fn outcome(error: u32) -> Outcome {
    if error == 0 { Outcome::Done } else { Outcome::Failed }
}

fn over(task: Task, answer: Answer, data: &[u8]) -> Over {
    let Task { probe, keeps, .. } = task;
    let probe: Probe = probe;
    Over { probe, answer, data: if keeps { data.to_vec() } else { Vec::new() } }
}

#[cfg(test)]
mod tests {
    use super::super::RealDisk;
    use super::*;
    use headstack_model::Lbn;
    use headstack_nbd::{Export, Exports, Handshake, Limits, Wire};
    use headstack_probe::drive::ProbeTarget;
    use std::thread::{Builder, JoinHandle};

    type Heard = (u16, u16, u32);

    fn shake_hands(stream: &mut UnixStream, export: Export) {
        let exports = Exports::new(vec![export]).expect("it can be exported");
        let mut handshake = Handshake::new(exports, Limits::default(), Instant::ZERO);
        loop {
            while !handshake.output().is_empty() {
                let sent = stream.write(handshake.output()).expect("the client listens");
                handshake.sent(Instant::ZERO, sent);
            }
            if handshake.chosen().is_some() {
                return;
            }
            let count = stream.read(handshake.input_space()).expect("the client speaks");
            assert!(count > 0, "the client continues");
            handshake.filled(Instant::ZERO, count);
        }
    }

    /// Receives a request with its data, and acknowledges it.
    fn answer(stream: &mut UnixStream) -> Option<Heard> {
        let mut head = [0; 28];
        stream.read_exact(&mut head).ok()?;
        let word = |at: usize| u16::from_be_bytes([head[at], head[at + 1]]);
        let length = u32::from(word(24)) << 16 | u32::from(word(26));
        let (flags, command) = (word(4), word(6));
        let mut data = vec![0; length as usize];
        if command == 1 {
            stream.read_exact(&mut data).ok()?;
            data.clear();
        }
        let reply = [&0x6744_6698u32.to_be_bytes()[..], &[0; 4], &head[8..16], &data].concat();
        stream.write_all(&reply).ok()?;
        Some((command, flags, length))
    }

    /// A server of this export that answers `most` requests and then receives nothing until the client ends; and a disk that is
    /// probed there.
    fn served(export: Export, most: usize, timeout: Option<Duration>) -> (RealDisk, JoinHandle<Vec<Heard>>) {
        let (ours, mut theirs) = UnixStream::pair().expect("there are sockets");
        ours.set_write_timeout(timeout).expect("it is no zero");
        let serve = move || {
            shake_hands(&mut theirs, export);
            let heard = (0..most).map_while(|_| answer(&mut theirs)).collect();
            let closed = rustix::event::PollFlags::empty();
            let mut polled = [rustix::event::PollFd::new(&theirs, closed)];
            rustix::event::poll(&mut polled, None).expect("it ends at some time");
            heard
        };
        let server = Builder::new().spawn(serve).expect("there are threads");
        let options = Options { writes: true, no_real_time: true, ..Options::default() };
        let opened = talk(Stream::Unix(ours), "here".to_string(), "", options).expect("it is served");
        (RealDisk::new(opened, options), server)
    }

    fn requested(disk: &mut RealDisk, command: ProbeCommand) -> Result<Outcome, String> {
        let probe = Probe { number: 1, command, at: Instant::ZERO };
        disk.submit(probe)
            .and_then(|()| disk.wait())
            .map(|(_, answer)| answer.outcome)
            .map_err(|error| error.to_string())
    }

    #[test]
    fn write_to_the_media_is_rejected_without_fua() {
        let write = |to_media| ProbeCommand::Write { lbn: Lbn(8), sectors: 8, to_media };
        for fua in [false, true] {
            let export = Export { fua, ..Export::new("disk", 1 << 20) };
            let (mut disk, server) = served(export, 10, None);
            let to_media = requested(&mut disk, write(true));
            assert_eq!(to_media, Ok(if fua { Outcome::Done } else { Outcome::Refused }));
            assert_eq!(requested(&mut disk, write(false)), Ok(Outcome::Done));
            let read = ProbeCommand::Read { lbn: Lbn(0), sectors: 1, from_media: true };
            assert_eq!(requested(&mut disk, read), Ok(Outcome::Done));
            drop(disk);
            let heard = server.join().expect("it serves");
            // Written contents were read first.
            let expected: &[Heard] = if fua {
                &[(0, 0, 4096), (1, 1, 4096), (1, 0, 4096), (0, 1, 512)]
            } else {
                &[(0, 0, 4096), (1, 0, 4096), (0, 0, 512)]
            };
            assert_eq!(heard, expected, "FUA {fua}");
        }
    }

    #[test]
    fn stalled_server_times_out() {
        // More than the sockets buffer.
        let write = ProbeCommand::Write { lbn: Lbn(0), sectors: 32 << 10, to_media: false };
        let (mut disk, server) = served(Export::new("disk", 1 << 30), 1, Some(Duration::from_millis(20)));
        let reported = requested(&mut disk, write).expect_err("it is not taken");
        assert_eq!(reported, "here: the server has neither answered nor taken anything for 120 s");
        drop(disk);
        assert_eq!(server.join().expect("it serves"), [(0, 0, 16 << 20)]);
    }

    #[test]
    fn closed_connection_is_reported() {
        let (ours, mut theirs) = UnixStream::pair().expect("there are sockets");
        let serve = move || shake_hands(&mut theirs, Export::new("disk", 1 << 20));
        let server = Builder::new().spawn(serve).expect("there are threads");
        let options = Options { no_real_time: true, ..Options::default() };
        let opened = talk(Stream::Unix(ours), "here".to_string(), "", options).expect("it is served");
        server.join().expect("it serves");
        let reported = requested(
            &mut RealDisk::new(opened, options),
            ProbeCommand::Read { lbn: Lbn(0), sectors: 1, from_media: true },
        );
        assert_eq!(reported, Err("here: the server has closed the connection".to_string()));
    }

    #[test]
    fn block_size_is_at_least_the_server_minimum() {
        for (minimum, block) in [(1, 512), (512, 512), (4096, 4096), (65_536, 65_536)] {
            assert_eq!(block_bytes(minimum).ok(), Some(block), "{minimum}");
        }
        for minimum in [1000, 3 << 12, 1 << 17, u32::MAX] {
            let error = block_bytes(minimum).expect_err("no server may have it").to_string();
            assert!(error.starts_with(&format!("blocks of at least {minimum} bytes")), "{error}");
        }
    }
}
