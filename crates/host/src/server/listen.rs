//! Listening sockets, and the system's settings for many clients.

use super::Address;
use crate::log_parts;
use headstack_nbd::{Origin, Tls};
use log::warn;
use rustix::net::sockopt::socket_peercred;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use socket2::{Domain, SockAddr, Socket, TcpKeepalive, Type};
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::fs::FileTypeExt;
use std::path::Path;
use std::time::Duration;

/// Connections that may wait to be accepted. NBD servers send first, so a client beyond a short queue would wait forever.
const BACKLOG: i32 = 4096;

/// A listening socket.
#[derive(Debug)]
pub struct Listener {
    socket: Socket,
    address: Address,
    is_own: bool,
    /// Overrides the use of TLS for its clients.
    tls: Option<TlsUse>,
}

/// Use of TLS by the clients of one listener.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum TlsUse {
    /// Not offered.
    Off,
    /// Allowed.
    Optional,
    /// Required.
    Required,
}

impl TlsUse {
    /// The TLS settings of a listener's clients, from those for all clients.
    pub(super) fn tls_for(wanted: Option<TlsUse>, all: Option<&Tls>) -> Option<Tls> {
        let tls = all?.clone();
        match wanted {
            None => Some(tls),
            Some(TlsUse::Off) => None,
            Some(wanted) => Some(Tls { required: wanted == TlsUse::Required, ..tls }),
        }
    }
}

impl Listener {
    /// Listens at an address.
    ///
    /// *Errors:* it is not available, or in use.
    pub fn bind(address: &Address) -> io::Result<Listener> {
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
        let address = socket.local_addr()?.as_socket().map_or(address.clone(), Address::Tcp);
        Listener::from_socket(socket, address, true)
    }

    /// A listening socket, with its file or without.
    pub(super) fn from_socket(socket: Socket, address: Address, is_own: bool) -> io::Result<Listener> {
        socket.set_nonblocking(true)?;
        Ok(Listener { socket, address, is_own, tls: None })
    }

    /// Overrides the use of TLS for its clients.
    pub fn with_tls(mut self, tls: Option<TlsUse>) -> Listener {
        self.tls = tls;
        self
    }

    /// The override of the use of TLS, if any.
    pub(super) fn tls(&self) -> Option<TlsUse> {
        self.tls
    }

    /// The address, with the port that the system chose if it was 0.
    pub fn address(&self) -> &Address {
        &self.address
    }

    /// Accepts a client; returns its origin, and its name for the log.
    pub(super) fn accept(&self) -> io::Result<(Socket, Origin, String)> {
        let (socket, name) = self.socket.accept()?;
        settle(&socket);
        let (origin, words) = match name.as_socket() {
            Some(name) => (Origin::Network(name.ip()), name.to_string()),
            None => match socket_peercred(&socket) {
                Ok(whose) => {
                    let (uid, process) = (whose.uid.as_raw(), whose.pid.as_raw_nonzero());
                    (Origin::Local { uid }, format!("{} (process {process}, uid {uid})", self.address))
                }
                Err(_) => (Origin::Unknown, self.address.to_string()),
            },
        };
        Ok((socket, origin, words))
    }
}

impl AsFd for Listener {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        if let (Address::Unix(path), true) = (&self.address, self.is_own) {
            #[allow(clippy::disallowed_methods, reason = "the socket's file is the listener's")]
            let _ = std::fs::remove_file(path);
        }
    }
}

/// Whether a path is a socket without a listener, left by a server that died. Anything else belongs to another program, and so
/// does a socket in doubt: one of another kind, or one that is too busy to answer.
fn is_abandoned(path: &Path, name: &SockAddr) -> io::Result<bool> {
    if !path.symlink_metadata().is_ok_and(|found| found.file_type().is_socket()) {
        return Ok(false);
    }
    let socket = Socket::new(Domain::UNIX, Type::STREAM, None)?;
    socket.set_nonblocking(true)?;
    Ok(socket.connect(name).is_err_and(|error| error.kind() == io::ErrorKind::ConnectionRefused))
}

/// Files kept for what the process opens later: disks' data, metrics, configuration, a child command.
const OTHER_FILES: u64 = 16;

/// Maximum number of open files that the process requests. Its child processes inherit it, and some try each number.
const MOST_FILES: u64 = 1 << 16;

/// Raises the limit of open files; returns how many of `most` connections it allows in addition to the files that are open now.
///
/// *Errors:* it allows none.
pub(super) fn room_for(most: usize) -> io::Result<usize> {
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    let allowed = maximum.map_or(MOST_FILES, |maximum| maximum.min(MOST_FILES));
    if current.is_some_and(|current| current < allowed) {
        // If refused, there are fewer connections.
        let _ = setrlimit(Resource::Nofile, Rlimit { current: Some(allowed), maximum });
    }
    let files = getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX);
    let others = open_files() + OTHER_FILES;
    match usize::try_from(files.saturating_sub(others)).unwrap_or(usize::MAX) {
        0 => Err(io::Error::other(format!(
            "the limit of open files is {files}, and more than {others} are needed: raise it (ulimit -n, LimitNOFILE)"
        ))),
        room => {
            if room < most {
                warn!(
                    target: log_parts::CLIENT,
                    "the limit of open files is {files}: at most {room} connections instead of {most}; raise it (ulimit -n, LimitNOFILE)"
                );
            }
            Ok(most.min(room))
        }
    }
}

/// Files that the process has open.
fn open_files() -> u64 {
    #[allow(clippy::disallowed_methods, reason = "the system lists open files in a folder")]
    let listed = std::fs::read_dir("/proc/self/fd");
    listed.map_or(OTHER_FILES, |files| files.count() as u64)
}

/// Time for a client's machine to acknowledge data.
const TAKEN_FOR_GONE: Duration = Duration::from_secs(150);

/// Sends small replies at once, and detects clients whose machine is gone. After a minute of silence the system sends keep-alive probes; it
/// ends the connection after nine without an answer, or if data are not acknowledged in time. Only TCP has, and needs, these settings.
fn settle(socket: &Socket) {
    let timeout =
        TcpKeepalive::new().with_time(Duration::from_secs(60)).with_interval(Duration::from_secs(10));
    let _ = socket.set_tcp_nodelay(true);
    let _ = socket.set_tcp_keepalive(&timeout);
    let _ = socket.set_tcp_user_timeout(Some(TAKEN_FOR_GONE));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keepalive_is_enabled_on_tcp_sockets() {
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
    fn file_limit_is_raised_for_the_connections() {
        let Rlimit { maximum, .. } = getrlimit(Resource::Nofile);
        let few = Rlimit { current: Some(512), maximum };
        setrlimit(Resource::Nofile, few).expect("less is always allowed");
        let most = maximum.unwrap_or(u64::MAX).min(MOST_FILES);
        // Other tests of the process open and close files.
        let room = room_for(usize::MAX).expect("there are files") as u64;
        assert!((most - 1024..most - OTHER_FILES).contains(&room), "{room} of {most}");
        assert_eq!(getrlimit(Resource::Nofile), Rlimit { current: Some(most), maximum });
        assert_eq!(room_for(3).expect("there are files"), 3);
    }
}
