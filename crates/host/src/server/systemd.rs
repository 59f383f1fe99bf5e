//! What systemd hands over and is told.
//!
//! *Source:* sd_listen_fds(3), sd_notify(3).

use super::{Address, Listener};
use listenfd::ListenFd;
use sd_notify::NotifyState;
use socket2::Socket;
use std::io;
use std::path::Path;

impl Listener {
    /// The sockets that systemd listens at for this process (socket activation), of which there may be none. To be asked for once.
    ///
    /// *Errors:* one of them is neither a TCP nor a Unix stream socket.
    pub fn handed_over() -> io::Result<Vec<Listener>> {
        let mut found = ListenFd::from_env();
        (0..found.len()).filter_map(|place| adopt_socket(&mut found, place).transpose()).collect()
    }
}

fn adopt_socket(found: &mut ListenFd, place: usize) -> io::Result<Option<Listener>> {
    let wrong =
        |error: io::Error| io::Error::new(error.kind(), format!("socket {place} of systemd: {error}"));
    if let Ok(Some(tcp)) = found.take_tcp_listener(place) {
        let address = Address::Tcp(tcp.local_addr().map_err(wrong)?);
        return Listener::from_socket(Socket::from(tcp), address, false).map(Some);
    }
    let Some(unix) = found.take_unix_listener(place).map_err(wrong)? else { return Ok(None) };
    let name = unix.local_addr().map_err(wrong)?;
    let path = name.as_pathname().unwrap_or(Path::new("@")).to_path_buf();
    Listener::from_socket(Socket::from(unix), Address::Unix(path), false).map(Some)
}

/// Tells systemd, if that waits for it, that clients are served from now on.
pub fn tell_ready() {
    // Nobody who waits is told nothing.
    let _ = sd_notify::notify(&[NotifyState::Ready]);
}

/// Tells systemd, if that asks for it, that the process is about to end.
pub fn tell_stopping() {
    // As above.
    let _ = sd_notify::notify(&[NotifyState::Stopping]);
}
