//! The process of a node. It ends with the test, even if the test fails.

use crate::nbd::Client;
use crate::tools::{folder, run, text, wait_for};
use std::fs;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use tempfile::TempDir;

/// A running node. Dropping this value kills it.
pub(crate) struct Node {
    child: Child,
    folder: TempDir,
}

impl Node {
    /// Starts a node with these options and a socket, and waits until it answers.
    pub(crate) fn start(options: &[&str]) -> Node {
        Node::attempt(options).unwrap_or_else(|said| panic!("it ended: {said}"))
    }

    /// Starts a node and waits until it answers. If it ends before that, returns what it printed.
    fn attempt(options: &[&str]) -> Result<Node, String> {
        let folder = folder();
        let mut command = Command::new(env!("CARGO_BIN_EXE_headstack"));
        command.arg("serve").arg("--nbd").arg(format!("unix:{}", text(&folder.path().join("socket"))));
        let log = |name| fs::File::create(folder.path().join(name)).expect("the folder is writable");
        command.args(options).stdin(Stdio::null()).stdout(log("out")).stderr(log("err"));
        let child = command.spawn().expect("the command starts");
        let mut node = Node { child, folder };
        wait_for("the node answers", || {
            let is_over = node.child.try_wait().expect("it is a child of this process").is_some();
            if is_over {
                Some(Err(node.said()))
            } else {
                Client::connect(&node.socket()).ok().map(|_| Ok(()))
            }
        })?;
        Ok(node)
    }

    /// A node with an emulated disk at 1000 times its real speed, for tests in which only the contents matter.
    pub(crate) fn of_quick_disk() -> Node {
        Node::start(&["--emulate", "st2000dm006", "--set", "disk.speed=1000.0"])
    }

    /// A node whose disk is an existing file. Waits until the file is free: the system closes the files of a killed node some moments after
    /// its process has ended, and until then another node is refused.
    pub(crate) fn of_file(path: &Path) -> Node {
        Node::of_file_with(path, &[])
    }

    /// Like [`Node::of_file`], with additional options.
    pub(crate) fn of_file_with(path: &Path, options: &[&str]) -> Node {
        let options = [&["--disk", text(path)], options].concat();
        wait_for("the file is free", || match Node::attempt(&options) {
            Err(said) if said.contains("another program has it") => None,
            started => Some(started.unwrap_or_else(|said| panic!("it ended: {said}"))),
        })
    }

    /// Everything it has printed.
    pub(crate) fn said(&self) -> String {
        ["out", "err"]
            .map(|name| fs::read_to_string(self.folder.path().join(name)).unwrap_or_default())
            .concat()
    }

    /// Its metrics. It must have been started with `--metrics`.
    pub(crate) fn metrics(&self) -> String {
        let address = wait_for("the address is printed", || {
            let said = self.said();
            let (_, rest) = said.split_once("metrics: http://")?;
            Some(rest.split_once("/metrics")?.0.to_string())
        });
        let mut stream = TcpStream::connect(&address).expect("it listens");
        write!(stream, "GET /metrics HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n")
            .expect("it reads");
        let mut answer = String::new();
        stream.read_to_string(&mut answer).expect("it is text");
        answer
    }

    pub(crate) fn socket(&self) -> PathBuf {
        self.folder.path().join("socket")
    }

    /// The NBD URI of its first export.
    pub(crate) fn uri(&self) -> String {
        format!("nbd+unix:///?socket={}", text(&self.socket()))
    }

    /// A connection to its first export.
    pub(crate) fn client(&self) -> Client {
        Client::connect(&self.socket()).unwrap_or_else(|error| panic!("{error}: {}", self.said()))
    }

    /// The id of its process.
    pub(crate) fn process(&self) -> u32 {
        self.child.id()
    }

    /// Sends SIGTERM, waits until it has ended, which must be with success, and returns everything it printed.
    pub(crate) fn stop(mut self) -> String {
        run("sh", &["-c", &format!("kill -TERM {}", self.process())]);
        let status = self.ended();
        assert!(status.success(), "{status}: {}", self.said());
        self.said()
    }

    /// Waits until it has ended, and returns its exit status.
    pub(crate) fn ended(&mut self) -> ExitStatus {
        wait_for("the node ends", || self.child.try_wait().expect("it is a child of this process"))
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        // It may have ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The value of a metric of the node's only disk.
pub(crate) fn metric(metrics: &str, name: &str) -> f64 {
    let line = metrics.lines().find(|line| line.starts_with(&format!("{name}{{")));
    let number = line.and_then(|line| line.rsplit(' ').next()?.parse().ok());
    number.unwrap_or_else(|| panic!("no {name} in {metrics}"))
}
