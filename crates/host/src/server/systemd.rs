//! Sockets from systemd, and notifications to it.
//!
//! *Source:* sd_listen_fds(3), sd_notify(3).

use super::{Address, Listener};
use listenfd::ListenFd;
use sd_notify::NotifyState;
use socket2::Socket;
use std::io;
use std::path::Path;

impl Listener {
    /// The sockets that systemd listens at for this process (socket activation), perhaps none. Call it once.
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

/// Notifies systemd, if it waits for that, that clients are served now.
pub fn tell_ready() {
    // Fails only if systemd does not wait.
    let _ = sd_notify::notify(&[NotifyState::Ready]);
}

/// Notifies systemd, if it waits for that, that the process is about to end.
pub fn tell_stopping() {
    let _ = sd_notify::notify(&[NotifyState::Stopping]);
}
