//! What `headstack serve` says while it runs, what it reads again, whom it waits for, and who may ask for its figures.

use crate::common::{command, headstack, printed, refused};
use std::fs;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use tempfile::TempDir;

/// How often a test looks whether something has come.
const LOOKS: u32 = 2_000_000;

/// A node that runs, and what it says on standard error.
struct Node {
    child: Child,
    folder: TempDir,
}

impl Node {
    /// A node of 1 MiB of memory with these options, whose file (if any) is `node.toml` in its folder.
    fn start(folder: TempDir, options: &[&str]) -> Node {
        let err = fs::File::create(folder.path().join("err")).expect("the folder is writable");
        let out = fs::File::create(folder.path().join("out")).expect("the folder is writable");
        let mut command = command(&["serve"]);
        let child =
            command.args(options).current_dir(folder.path()).stdin(Stdio::null()).stdout(out).stderr(err);
        let child = child.spawn().expect("the command starts");
        let node = Node { child, folder };
        node.wait_for("out", "nbd");
        node
    }

    /// Waits until it has said this, in `out` or `err`; all that it has said.
    fn wait_for(&self, file: &str, part: &str) -> String {
        let path = self.folder.path().join(file);
        let said = || fs::read_to_string(&path).ok().filter(|said| said.contains(part));
        let found = (0..LOOKS).find_map(|_| said());
        found.unwrap_or_else(|| panic!("{part} is not in {}", fs::read_to_string(&path).unwrap_or_default()))
    }

    fn signal(&self, name: &str) {
        let process = self.child.id().to_string();
        let sent = std::process::Command::new("kill").args([&format!("-{name}"), &process]).status();
        assert!(sent.expect("there is kill").success());
    }

    /// A connection that was greeted.
    fn greeted(&self) -> Option<UnixStream> {
        let mut stream = UnixStream::connect(self.folder.path().join("nbd")).expect("it listens");
        stream.read_exact(&mut [0; 18]).is_ok().then_some(stream)
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        // It may have ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn folder() -> TempDir {
    tempfile::tempdir().expect("there is room for a folder")
}

/// Says an option to a server that has greeted; the kind of its first answer.
fn option(stream: &mut UnixStream, number: u32, data: &[u8]) -> u32 {
    let flags: &[u8] = &[0, 0, 0, 3];
    let head = [flags, b"IHAVEOPT", &number.to_be_bytes(), &(data.len() as u32).to_be_bytes(), data].concat();
    stream.write_all(&head).expect("it reads");
    let mut reply = [0; 20];
    stream.read_exact(&mut reply).expect("it answers");
    u32::from_be_bytes(reply[12..16].try_into().expect("there are four"))
}

/// The data of GO for an export.
fn go(name: &str) -> Vec<u8> {
    [&(name.len() as u32).to_be_bytes()[..], name.as_bytes(), &[0, 0]].concat()
}

#[test]
fn log_names_rejected_client_and_reason_without_control_bytes() {
    let node = Node::start(folder(), &["--disk", "memory:1M", "--nbd", "unix:nbd"]);
    let mut stream = node.greeted().expect("there are seats");
    option(&mut stream, 7, &go("dsk0\x1b]0;owned\x07"));
    let said = node.wait_for("err", "refused");
    assert!(said.contains(" warn  client: unix:nbd (process "), "{said}");
    assert!(said.contains("refused: no export `dsk0\\u{1b}]0;owned\\u{7}`"), "{said}");
    assert!(!said.contains('\x1b'), "{said}");
}

#[test]
fn log_reports_rejection_beyond_the_connection_limit() {
    let folder = folder();
    let config = "listen = [\"unix:nbd\"]\n[limits]\nconnections = 2\n[[disk]]\nram_bytes = 1048576\n";
    fs::write(folder.path().join("node.toml"), config).expect("the folder is writable");
    let node = Node::start(folder, &["node.toml", "--log-format", "json"]);
    let _held = [node.greeted().expect("there are two seats"), node.greeted().expect("there are two seats")];
    assert!(node.greeted().is_none());
    let said = node.wait_for("err", "refused");
    let line: serde_json::Value =
        serde_json::from_str(said.lines().next().expect("there is a line")).expect("it is JSON");
    assert_eq!((line["level"].as_str(), line["part"].as_str()), (Some("warn"), Some("client")));
    let message = line["message"].as_str().unwrap_or_default();
    assert!(message.ends_with("refused: all 2 connections are taken (limits.connections)"), "{message}");
}

#[test]
fn verbose_log_reports_clients_that_connect_and_leave() {
    let node = Node::start(folder(), &["--disk", "memory:1M", "--nbd", "unix:nbd", "-v"]);
    let mut stream = node.greeted().expect("there are seats");
    option(&mut stream, 7, &go("disk0"));
    node.wait_for("err", "uses export `disk0`");
    drop(stream);
    node.wait_for("err", "left export `disk0`");
    let said = headstack(&["serve", "--disk", "memory:1M", "--nbd", "unix:x", "--log", "loud"]);
    assert!(said.code == 2 && said.err.contains("off, error, warn, info, debug"), "{}", said.err);
}

#[test]
fn sighup_reloads_a_valid_file_and_ignores_a_bad_one() {
    let folder = folder();
    let path = folder.path().join("node.toml");
    let write = |allow: &str| {
        let config = format!(
            "listen = [\"unix:nbd\"]\n[[disk]]\nram_bytes = 1048576\n[[export]]\ndisk = \"disk0\"\nallow = [{allow}]\n"
        );
        fs::write(&path, config).expect("the folder is writable");
    };
    write("");
    let node = Node::start(folder, &["node.toml", "--log", "info"]);
    let mut old = node.greeted().expect("there are seats");
    assert_eq!(option(&mut old, 7, &go("disk0")), 3);
    let choice = || option(&mut node.greeted().expect("there are seats"), 7, &go("disk0"));
    write("\"192.0.2.0/24\"");
    node.signal("HUP");
    node.wait_for("err", "read again: ");
    assert!((0..LOOKS).any(|_| choice() == 0x8000_0006), "the export is for others now");
    write("\"anyone\"");
    node.signal("HUP");
    let said = node.wait_for("err", "not read again");
    assert!(said.contains("node.toml:6: export[0].allow: `anyone` allows no client"), "{said}");
    assert_eq!(choice(), 0x8000_0006, "all holds as before");
    let mut node = node;
    node.signal("TERM");
    assert!(node.child.wait().expect("it is a child").success(), "it ended in order");
}

#[test]
fn tls_is_configured_per_listener() {
    let folder = folder();
    let path = folder.path().join("node.toml");
    let config = |listeners: &str| {
        let text = format!(
            "listen = [\"unix:nbd\", \"127.0.0.1:10809\"]\n[tls]\ncertificate = \"c\"\nkey = \"k\"\nlisteners = {listeners}\n\
             [[disk]]\nram_bytes = 1048576\n"
        );
        fs::write(&path, text).expect("the folder is writable");
    };
    let file = path.to_str().expect("the path is UTF-8");
    config("{ \"unix:nbd\" = \"off\" }");
    let output = printed(&["serve", file, "--check=file"]);
    assert!(output.contains("  nbd+unix:///disk0?socket=nbd\n  nbds://127.0.0.1:10809/disk0\n"), "{output}");
    config("{ \"unix:nbt\" = \"off\" }");
    let line = refused(&["serve", file, "--check=file"], 2);
    assert!(line.contains("`unix:nbt` is no address of `listen`; did you mean `unix:nbd`?"), "{line}");
}

#[test]
fn disk_named_twice_or_held_by_a_process_is_rejected() {
    let folder = folder();
    let disk = folder.path().join("disk");
    fs::File::create(&disk).and_then(|file| file.set_len(1 << 20)).expect("there is room");
    let link = folder.path().join("link");
    std::os::unix::fs::symlink(&disk, &link).expect("the folder is writable");
    let [disk, link] = [&disk, &link].map(|path: &PathBuf| path.to_str().expect("the path is UTF-8"));
    let socket = format!("unix:{}", folder.path().join("nbd2").display());
    let line = refused(&["serve", "--disk", disk, "--disk", link, "--nbd", &socket], 2);
    assert!(line.contains("is the same as") && line.contains("of disk disk"), "{line}");
    let held = fs::File::open(disk).expect("it is there");
    held.try_lock().expect("it is not locked");
    let line = refused(&["serve", "--disk", disk, "--nbd", &socket], 2);
    let own = format!("process {}) has it as a disk", std::process::id());
    assert!(line.contains("another program (") && line.ends_with(&own), "{line}");
}

#[test]
fn metrics_endpoint_binds_loopback_and_rejects_foreign_hosts() {
    let metrics = ["--disk", "memory:1M", "--nbd", "unix:nbd", "--metrics", ":0"];
    let node = Node::start(folder(), &metrics);
    let said = node.wait_for("out", "metrics: http://");
    let address = said.split("metrics: http://").nth(1).and_then(|rest| rest.split('/').next());
    let address = address.expect("it is printed");
    assert!(address.starts_with("127.0.0.1:"), "{address}");
    let ask = |path: &str, host: &str| {
        let mut stream = TcpStream::connect(address).expect("it listens");
        let said = format!("GET {path} HTTP/1.1\r\nHost: {host}\r\n\r\n");
        stream.write_all(said.as_bytes()).expect("it reads");
        let mut heard = String::new();
        stream.read_to_string(&mut heard).expect("it is text");
        heard
    };
    assert!(ask("/healthz", address).ends_with("\r\n\r\nok\n"));
    assert!(ask("/", "localhost").contains("/metrics\n/json\n"));
    assert!(ask("/metrics", address).contains("headstack_build_info{version=\""));
    assert!(ask("/metrics", "evil.example").starts_with("HTTP/1.1 421 "));
}

#[test]
fn limits_are_checked_and_printed() {
    let folder = folder();
    let path = folder.path().join("node.toml");
    let config = |limits: &str| {
        let text = format!("listen = [\"unix:x\"]\n[limits]\n{limits}\n[[disk]]\nram_bytes = 1048576\n");
        fs::write(&path, text).expect("the folder is writable");
    };
    let file = Path::to_str(&path).expect("the path is UTF-8");
    config("connections = 100\nin_flight_bytes_together = 67108864");
    let output = printed(&["serve", file, "--check=file"]);
    assert!(
        output.contains("clients: at most 100 connections, 75 of them from one address; at most 64 MiB"),
        "{output}"
    );
    config("total_in_flight_bytes = 1048576");
    let line = refused(&["serve", file, "--check=file"], 2);
    assert!(line.contains("limits.total_in_flight_bytes: 1048576 is outside 33554432 to"), "{line}");
    config("idle_ms = 0.0");
    assert!(refused(&["serve", file, "--check=file"], 2).contains("limits.idle_ms: 0 is outside"));
    let line = refused(&["serve"], 2);
    assert!(
        line.contains("headstack serve CONFIG.toml") && line.contains("--disk PATH --nbd ADDRESS"),
        "{line}"
    );
}
