//! `--control`: faults of running disks by commands at a Unix socket, one a line; each gets one line as its answer.

use super::rule;
use crate::failure::Failure;
use headstack_host::DiskHandle;
use std::fs;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{Builder, JoinHandle};
use std::time::Duration;

/// Longest line in bytes.
const LONGEST: u64 = 4096;

/// Time for a client to send its next line.
const PATIENCE: Duration = Duration::from_secs(5);

/// A socket that takes commands, until it is dropped.
pub(super) struct Control {
    path: PathBuf,
    is_over: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Control {
    /// Listens at a path. A socket without a listener is replaced.
    ///
    /// *Errors:* the path is in use, or cannot be written.
    #[allow(clippy::disallowed_methods, reason = "the socket's file is the listener's")]
    pub(super) fn start(path: &Path, disks: Vec<DiskHandle>) -> Result<Control, Failure> {
        let fault = |error: io::Error| Failure::Input(format!("--control {}: {error}", path.display()));
        let abandoned = |error: &io::Error| {
            error.kind() == io::ErrorKind::AddrInUse
                && UnixStream::connect(path)
                    .is_err_and(|error| error.kind() == io::ErrorKind::ConnectionRefused)
        };
        let listener = UnixListener::bind(path).or_else(|error| {
            if !abandoned(&error) {
                return Err(error);
            }
            fs::remove_file(path)?;
            UnixListener::bind(path)
        });
        let listener = listener.map_err(fault)?;
        let is_over = Arc::new(AtomicBool::new(false));
        let ends = Arc::clone(&is_over);
        let run = move || {
            for client in listener.incoming().flatten() {
                if ends.load(Ordering::Relaxed) {
                    return;
                }
                // A client that leaves in between has no answer to get.
                let _ = serve(&client, &disks);
            }
        };
        let thread = Builder::new().name("control".to_string()).spawn(run).map_err(fault)?;
        Ok(Control { path: path.to_path_buf(), is_over, thread: Some(thread) })
    }
}

fn serve(client: &UnixStream, disks: &[DiskHandle]) -> io::Result<()> {
    client.set_read_timeout(Some(PATIENCE))?;
    client.set_write_timeout(Some(PATIENCE))?;
    let mut lines = BufReader::new(client);
    let mut line = String::new();
    while lines.by_ref().take(LONGEST).read_line(&mut line)? > 0 {
        let answer = match rule::carry_out(line.trim(), disks) {
            Ok(done) => done,
            Err(error) => format!("error: {error}"),
        };
        (&*client).write_all(format!("{answer}\n").as_bytes())?;
        line.clear();
    }
    Ok(())
}

impl Drop for Control {
    #[allow(clippy::disallowed_methods, reason = "the socket's file is the listener's")]
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::Relaxed);
        // Wakes the thread.
        let _ = UnixStream::connect(&self.path);
        if let Some(thread) = self.thread.take() {
            // If it panicked, the panic hook has reported that.
            let _ = thread.join();
        }
        let _ = fs::remove_file(&self.path);
    }
}
