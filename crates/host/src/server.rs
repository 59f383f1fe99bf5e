//! The NBD server: one thread that listens, does the handshakes, and hands each connection to the thread of the disk that
//! its client chose.

use crate::connection::{Connection, Link, Seat};
use crate::nbd::{Export, ExportError, Exports, Handshake, Limits, Session, Wire};
use crate::node::NodeHandle;
use crate::{Clock, DiskHandle, realtime};
use headstack_model::Nanos;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_encode, utf8_percent_encode};
use rustix::buffer::spare_capacity;
use rustix::event::epoll::{self, EventData, EventFlags};
use rustix::event::{EventfdFlags, Timespec, eventfd};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use slab::Slab;
use socket2::{Domain, SockAddr, Socket, TcpKeepalive, Type};
use std::fmt;
use std::io;
use std::net::{SocketAddr, ToSocketAddrs};
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::sync::Arc;
use std::thread::{Builder, JoinHandle};
use std::time::Duration;

/// What an export's name in a URI cannot have as it is (RFC 3986, 2.3).
const NO_NAME: AsciiSet = NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

/// The same of a path behind a URI's question mark.
const NO_PATH: AsciiSet = NO_NAME.remove(b'/');

/// Where a server listens.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Address {
    /// A TCP port of one address of the machine.
    Tcp(SocketAddr),
    /// A socket in the file system.
    Unix(PathBuf),
}

/// A text that is no address.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{met}` is no address: write HOST:PORT, :PORT (all IPv4 addresses) or unix:PATH")]
pub struct AddressError {
    met: String,
}

impl FromStr for Address {
    type Err = AddressError;

    fn from_str(text: &str) -> Result<Address, AddressError> {
        let wrong = || AddressError { met: text.to_string() };
        if let Some(path) = text.strip_prefix("unix:") {
            return if path.is_empty() { Err(wrong()) } else { Ok(Address::Unix(PathBuf::from(path))) };
        }
        let whole = if text.starts_with(':') { format!("0.0.0.0{text}") } else { text.to_string() };
        let found = whole.to_socket_addrs().ok().and_then(|mut found| found.next());
        found.map(Address::Tcp).ok_or_else(wrong)
    }
}

impl Address {
    /// The NBD URI of an export there.
    pub fn uri(&self, export: &str) -> String {
        let export = utf8_percent_encode(export, &NO_NAME);
        match self {
            Address::Tcp(address) => format!("nbd://{address}/{export}"),
            Address::Unix(path) => {
                let path = percent_encode(path.as_os_str().as_bytes(), &NO_PATH);
                format!("nbd+unix:///{export}?socket={path}")
            }
        }
    }
}

impl fmt::Display for Address {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Address::Tcp(address) => write!(to, "{address}"),
            Address::Unix(path) => write!(to, "unix:{}", path.display()),
        }
    }
}

/// An export and what is behind it.
#[derive(Clone, Debug)]
pub struct Served {
    /// What clients are told.
    pub export: Export,
    /// What serves them.
    pub target: Target,
}

/// What serves the clients of an export.
#[derive(Clone, Debug)]
pub enum Target {
    /// A volume of an emulated disk.
    Disk {
        /// The disk.
        disk: DiskHandle,
        /// The number of its volume.
        volume: u32,
    },
    /// A storage node.
    Node(NodeHandle),
}

impl Target {
    /// Whether it is to answer at its time and not as soon as it can.
    fn has_deadlines(&self) -> bool {
        match self {
            Target::Disk { disk, .. } => disk.inspect(|emulator| emulator.engine().is_some()),
            Target::Node(_) => false,
        }
    }

    fn clock(&self) -> Clock {
        match self {
            Target::Disk { disk, .. } => disk.clock(),
            Target::Node(node) => node.clock(),
        }
    }

    fn adopt(&self, connection: Connection<Session>) {
        match self {
            Target::Disk { disk, volume } => disk.adopt(Link::new(connection, *volume)),
            Target::Node(node) => node.adopt(Link::new(connection, 0)),
        }
    }
}

/// A server that runs until it is dropped.
#[derive(Debug)]
pub struct Server {
    address: Address,
    stop: Arc<OwnedFd>,
    thread: Option<JoinHandle<()>>,
}

/// Connections that may wait to be accepted. NBD servers speak first: a client beyond a short queue would wait for ever.
const BACKLOG: i32 = 4096;

impl Server {
    /// Connections that a server has at a time unless it is told otherwise.
    pub const CONNECTIONS: usize = 1024;

    /// Listens at an address, for at most so many connections at a time; who comes beyond is sent away. The process may have
    /// that many files open from then on, where the system allows it; where not, there are fewer connections.
    ///
    /// *Errors:* exports that cannot be; an address that cannot be had, or is in use.
    pub fn start(address: &Address, served: Vec<Served>, limits: Limits, most: usize) -> io::Result<Server> {
        let exports = served.iter().map(|served| served.export.clone()).collect();
        let exports =
            Exports::new(exports).map_err(|error: ExportError| io::Error::other(error.to_string()))?;
        let (listener, address) = listen(address)?;
        let stop = Arc::new(eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?);
        let epoll = epoll::create(epoll::CreateFlags::CLOEXEC)?;
        epoll::add(&epoll, &*stop, EventData::new_u64(STOP), EventFlags::IN)?;
        epoll::add(&epoll, &listener, EventData::new_u64(LISTEN), EventFlags::IN)?;
        let clock = Clock::new(1.0).map_err(io::Error::other)?;
        let has_deadlines = served.iter().any(|served| served.target.has_deadlines());
        let accepting = Accepting {
            listener,
            epoll,
            clock,
            exports,
            served,
            limits,
            most: room_for(most),
            seat: Arc::new(()),
            greeted: Slab::new(),
        };
        let run = move || {
            realtime::be_punctual();
            if has_deadlines {
                realtime::go_first();
            }
            accepting.run();
        };
        let thread = Some(Builder::new().name("nbd server".to_string()).spawn(run)?);
        Ok(Server { address, stop, thread })
    }

    /// Where it listens: with the port that it got where any was asked for.
    pub fn address(&self) -> &Address {
        &self.address
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // It only fails when it was told before.
        let _ = rustix::io::write(&*self.stop, &1u64.to_ne_bytes());
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
        if let Address::Unix(path) = &self.address {
            #[allow(clippy::disallowed_methods, reason = "the socket's file is the server's")]
            let _ = std::fs::remove_file(path);
        }
    }
}

/// A listening socket at an address.
fn listen(address: &Address) -> io::Result<(Socket, Address)> {
    let at = |error: io::Error| io::Error::new(error.kind(), format!("{address}: {error}"));
    let (socket, name) = match address {
        Address::Tcp(tcp) => {
            let socket = Socket::new(Domain::for_address(*tcp), Type::STREAM, None)?;
            socket.set_reuse_address(true)?;
            (socket, SockAddr::from(*tcp))
        }
        Address::Unix(path) => {
            let (socket, name) = (Socket::new(Domain::UNIX, Type::STREAM, None)?, SockAddr::unix(path));
            let name = name.map_err(at)?;
            if is_abandoned(path, &name)? {
                #[allow(clippy::disallowed_methods, reason = "the file of a socket that is dead")]
                std::fs::remove_file(path).map_err(at)?;
            }
            (socket, name)
        }
    };
    socket.bind(&name).and_then(|()| socket.listen(BACKLOG)).map_err(at)?;
    socket.set_nonblocking(true)?;
    let found = socket.local_addr()?.as_socket().map_or(address.clone(), Address::Tcp);
    Ok((socket, found))
}

/// Whether a path is a socket that nobody listens at, which a server left that died. Whatever else is there is not ours, and
/// neither is a socket of which that cannot be said: one of another kind, or one that is too busy to answer.
fn is_abandoned(path: &Path, name: &SockAddr) -> io::Result<bool> {
    if !path.symlink_metadata().is_ok_and(|found| found.file_type().is_socket()) {
        return Ok(false);
    }
    let socket = Socket::new(Domain::UNIX, Type::STREAM, None)?;
    socket.set_nonblocking(true)?;
    Ok(socket.connect(name).is_err_and(|error| error.kind() == io::ErrorKind::ConnectionRefused))
}

/// Files that are left for disks, their data and whatever else the process opens.
const OTHER_FILES: u64 = 64;

/// Most files that the process asks to have open. What it starts inherits it, and some programs try each number.
const MOST_FILES: u64 = 1 << 16;

/// Has the system let the process open more files; how many connections of `most` there is room for then.
fn room_for(most: usize) -> usize {
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    let allowed = maximum.map_or(MOST_FILES, |maximum| maximum.min(MOST_FILES));
    if current.is_some_and(|current| current < allowed) {
        // Where it is refused there are fewer connections.
        let _ = setrlimit(Resource::Nofile, Rlimit { current: Some(allowed), maximum });
    }
    let files = getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX);
    most.min(usize::try_from(files.saturating_sub(OTHER_FILES)).unwrap_or(usize::MAX))
}

/// Time for a client's machine to say that it got what was sent.
const TAKEN_FOR_GONE: Duration = Duration::from_secs(150);

/// Has small replies sent at once, and a client noticed whose machine is gone: after a minute in which it says nothing it is
/// asked, and after nine questions without an answer it is left. While it has not said that it got all data it is not asked,
/// and left after a time of its own. Only TCP has, and needs, any of these.
fn settle(socket: &Socket) {
    let patience =
        TcpKeepalive::new().with_time(Duration::from_secs(60)).with_interval(Duration::from_secs(10));
    let _ = socket.set_tcp_nodelay(true);
    let _ = socket.set_tcp_keepalive(&patience);
    let _ = socket.set_tcp_user_timeout(Some(TAKEN_FOR_GONE));
}

/// Clients that are greeted before others are looked after.
const AT_ONCE: usize = 64;

const STOP: u64 = u64::MAX;
const LISTEN: u64 = u64::MAX - 1;

/// What the server's thread owns.
struct Accepting {
    listener: Socket,
    epoll: OwnedFd,
    clock: Clock,
    exports: Exports,
    served: Vec<Served>,
    limits: Limits,
    most: usize,
    /// Each connection holds a copy.
    seat: Seat,
    /// Those that have not chosen.
    greeted: Slab<Connection<Handshake>>,
}

impl Accepting {
    fn run(mut self) {
        let mut events = Vec::with_capacity(64);
        let second = Timespec { tv_sec: 1, tv_nsec: 0 };
        loop {
            events.clear();
            let patience = (!self.greeted.is_empty()).then_some(&second);
            // Interrupted, it looks again.
            let _ = epoll::wait(&self.epoll, spare_capacity(&mut events), patience);
            let now = self.clock.elapsed();
            for event in &events {
                match event.data.u64() {
                    STOP => return,
                    LISTEN => self.accept(now),
                    place => self.go_on(place as usize, now),
                }
            }
            let late = |(place, connection): (usize, &Connection<Handshake>)| {
                connection.wire.poll_timeout().is_some_and(|at| at <= now).then_some(place)
            };
            let late: Vec<usize> = self.greeted.iter().filter_map(late).collect();
            late.into_iter().for_each(|place| drop(self.greeted.remove(place)));
        }
    }

    /// Greets those who wait, or sends them away where there are too many.
    fn accept(&mut self, now: Nanos) {
        // Of those that are left, epoll tells again.
        for _ in 0..AT_ONCE {
            match self.listener.accept() {
                Ok((socket, _)) if Arc::strong_count(&self.seat) > self.most => drop(socket),
                Ok((socket, _)) => self.greet(socket, now),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return,
                Err(_) => {
                    // No descriptor is left, or the client has gone already. Others must get time to close theirs.
                    #[allow(clippy::disallowed_methods, reason = "the system said that there is no more")]
                    std::thread::sleep(Duration::from_millis(1));
                    return;
                }
            }
        }
    }

    fn greet(&mut self, socket: Socket, now: Nanos) {
        settle(&socket);
        let wire = Handshake::new(self.exports.clone(), self.limits.clone(), now);
        let place = self.greeted.insert(Connection::new(socket.into(), wire, Arc::clone(&self.seat)));
        self.go_on(place, now);
    }

    /// Does what a handshake can do now; hands the connection over where it is done.
    fn go_on(&mut self, place: usize, now: Nanos) {
        let Some(connection) = self.greeted.get_mut(place) else { return };
        connection.receive(now);
        connection.send(now);
        if connection.is_over() || connection.is_deserted() {
            self.greeted.remove(place);
        } else if let Some(chosen) = connection.wire.chosen() {
            connection.unwatch(&self.epoll);
            let connection = self.greeted.remove(place);
            let target = &self.served[chosen].target;
            let time = target.clock().elapsed();
            if let Some(connection) = connection.with(|handshake| handshake.into_session(time)) {
                target.adopt(connection);
            }
        } else {
            connection.watch(&self.epoll, place as u64);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn is_a_client_asked_whether_it_is_still_there() {
        let tcp = Socket::new(Domain::IPV4, Type::STREAM, None).expect("there are sockets");
        settle(&tcp);
        assert!(
            tcp.keepalive().expect("it is a TCP socket") && tcp.tcp_nodelay().expect("it is a TCP socket")
        );
        assert_eq!(tcp.tcp_user_timeout().expect("it is a TCP socket"), Some(Duration::from_secs(150)));
        let unix = Socket::new(Domain::UNIX, Type::STREAM, None).expect("there are sockets");
        settle(&unix);
        assert!(unix.take_error().expect("it can be asked").is_none(), "it works as before");
    }

    #[test]
    fn may_the_process_have_as_many_files_as_connections() {
        let Rlimit { maximum, .. } = getrlimit(Resource::Nofile);
        let few = Rlimit { current: Some(512), maximum };
        setrlimit(Resource::Nofile, few).expect("less is always allowed");
        let most = maximum.unwrap_or(u64::MAX).min(MOST_FILES);
        assert_eq!(room_for(usize::MAX) as u64, most - 64);
        assert_eq!(getrlimit(Resource::Nofile), Rlimit { current: Some(most), maximum });
        assert_eq!(room_for(3), 3);
    }
}
