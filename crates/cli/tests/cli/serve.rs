//! `headstack serve` and `headstack top`: what they take and refuse, and what they tell of a small run. Real clients are in the
//! tests of their own.

use crate::common::{Done, headstack, json, printed, refused};
use headstack_prerequisites::have_programs;
use std::fs;
use std::path::{Path, PathBuf};
use tempfile::TempDir;

fn folder() -> TempDir {
    tempfile::tempdir().expect("there is room for a folder")
}

fn text(path: &Path) -> &str {
    path.to_str().expect("the path is UTF-8")
}

/// A node file in a folder.
fn node_file(folder: &TempDir, content: &str) -> PathBuf {
    let path = folder.path().join("node.toml");
    fs::write(&path, content).expect("the folder is writable");
    path
}

#[test]
fn invalid_serve_arguments_are_rejected_in_one_line() {
    let folder = folder();
    let file = node_file(&folder, "listen = [\"unix:x\"]\n[[disk]]\npaht = \"/dev/sdb\"\n");
    let unknown = format!("{}:3: disk[0].paht: unknown field `paht`", file.display());
    for (args, reported) in [
        (&["serve"][..], "CONFIG.toml"),
        (&["serve", text(&file)], unknown.as_str()),
        (&["serve", text(&file), "--check=file"], "did you mean `path`?"),
        (&["serve", "/nowhere/node.toml"], "/nowhere/node.toml"),
        (&["serve", "--disk", "memory:1M"], "--nbd ADDRESS"),
        (&["serve", "--disk", "memory:1000", "--nbd", "unix:x"], "multiple of 512"),
        (&["serve", "--disk", "memory:many", "--nbd", "unix:x"], "--disk memory:many"),
        (&["serve", "--disk", "/nowhere/disk", "--nbd", "unix:x"], "/nowhere/disk"),
        (&["serve", "--disk", "memory:1M", "--nbd", "nowhere"], "write HOST:PORT"),
        (&["serve", "--disk", "memory:1M", "--nbd", "unix:/nowhere/x"], "unix:/nowhere/x"),
        (
            &["serve", "--disk", "memory:1M", "--nbd", "unix:x", "--memory", "4K"],
            "memory_bytes: 4096 is outside",
        ),
        (
            &["serve", "--disk", "memory:1M", "--nbd", "unix:x", "--set", "disk.streams.dispatchset=1"],
            "did you mean `dispatch_set`?",
        ),
        (&["serve", "--disk", "memory:1M", "--nbd", "unix:x", "--set", "dispatch_set"], "must be KEY=VALUE"),
        (
            &["serve", "--disk", "memory:1M", "--nbd", "unix:x", "--user", "no-such-user"],
            "user no-such-user: there is none",
        ),
        (&["serve", "--disk", "memory:1M", "--nbd", "unix:x", "--metrics", "nowhere"], "--metrics nowhere"),
        (&["serve", "--disk", "memory:1M", "--nbd", "unix:x", "--stats=1ms"], "50ms"),
        (&["serve", "--emulate", "wd800j", "--nbd", "unix:x"], "did you mean `wd800jd`?"),
        (&["serve", "--emulate", "raid5", "--data", "a", "--data", "b", "--nbd", "unix:x"], "2 files for 1"),
        (
            &["serve", "--disk", "memory:1M", "--map", "a", "--map", "b", "--nbd", "unix:x"],
            "--map b: the command line",
        ),
        (&["serve", "--disk", "memory:1M", "--map", text(&file), "--nbd", "unix:x"], "is no track map"),
        (&["top", "127.0.0.1:1"], "127.0.0.1:1: no node answers there: "),
        (&["top", "127.0.0.1"], "127.0.0.1: no port: write HOST:PORT"),
        (&["top"], "HOST:PORT"),
    ] {
        let line = refused(args, 2);
        assert!(line.contains(reported), "{args:?}: {line}");
    }
}

#[test]
fn check_prints_the_plan_and_opens_nothing() {
    let folder = folder();
    let config = "listen = [\"unix:/nowhere/nbd\", \":10809\"]\nmetrics = \"127.0.0.1:9100\"\nuser = \"backup\"\n\
                  [[disk]]\npath = \"/nowhere/video\"\n[[disk]]\nemulate = \"wd800jd\"\nname = \"test\"\n\
                  [disk.streams]\ndispatch_set = 2\n\
                  [[export]]\ndisk = \"test\"\nallow = [\"10.0.0.0/8\", \"cert:viewer\"]\n[[export]]\ndisk = \"video\"\nname = \"old\"\nread_only = true\n";
    let file = node_file(&folder, config);
    let reported =
        printed(&["serve", text(&file), "--check=file", "--set", "disk.streams.requests_per_turn=4"]);
    let lines = [
        "ok: 2 disks and 2 exports",
        "video: /nowhere/video; 8 MiB of stream memory, N 4",
        "  nbd+unix:///old?socket=/nowhere/nbd (read-only)",
        "  nbd://0.0.0.0:10809/old (read-only)",
        "test: wd800jd, emulated, data in memory; 8 MiB of stream memory, D 2, N 4",
        "  nbd+unix:///test?socket=/nowhere/nbd (for 10.0.0.0/8, cert:viewer)",
        "  nbd://0.0.0.0:10809/test (for 10.0.0.0/8, cert:viewer)",
        "clients: at most 1,024 connections, 768 of them from one address; at most 512 MiB of requests and replies in flight",
        "runs as backup after opening disks and sockets",
        "metrics: http://127.0.0.1:9100/metrics; headstack top 127.0.0.1:9100",
    ];
    assert_eq!(reported.lines().collect::<Vec<_>>(), lines);
}

#[test]
fn node_schema_forbids_unknown_keys_of_node_and_disk() {
    let schema = json(&["serve", "--json-schema"]);
    assert_eq!(schema["additionalProperties"], false);
    assert_eq!(schema["$defs"]["DiskSpec"]["additionalProperties"], false);
    assert_eq!(schema["$defs"]["Config"]["properties"]["memory_bytes"]["default"], 8 << 20);
}

/// Runs a node with a command.
fn run(args: &[&str], shell: &str) -> Done {
    headstack(&[&["serve"], args, &["--", "sh", "-c", shell]].concat())
}

fn has_qemu_io() -> bool {
    have_programs(&["qemu-io"])
}

#[test]
fn written_bytes_read_back_and_persist_in_the_file() {
    if !has_qemu_io() {
        return;
    }
    let folder = folder();
    let disk = folder.path().join("video0");
    fs::File::create(&disk).and_then(|file| file.set_len(64 << 20)).expect("there is room for a disk");
    let args = ["--disk", text(&disk)];
    let write = "qemu-io -f raw -c 'write -P 7 1M 4M' -c 'read -P 7 2M 1M' -c flush \"$HEADSTACK_URI_VIDEO0\"; exit 3";
    let done = run(&args, write);
    assert_eq!(done.code, 3, "{}{}", done.out, done.err);
    assert!(done.out.contains("wrote 4194304/4194304") && !done.out.contains("failed"), "{}", done.out);
    for part in ["video0: ", "67.1 MB", "8 MiB of stream memory", "nbd+unix:///video0?socket=", "requests"] {
        assert!(done.err.contains(part), "{part} in {}", done.err);
    }
    let kept = fs::read(&disk).expect("the disk is there");
    assert!(kept[1 << 20..5 << 20].iter().all(|byte| *byte == 7) && kept[5 << 20] == 0);
}

#[test]
fn read_only_export_rejects_writes() {
    if !has_qemu_io() {
        return;
    }
    let folder = folder();
    let socket = folder.path().join("nbd");
    let config = format!(
        "listen = [\"unix:{}\"]\n[[disk]]\nram_bytes = 1048576\n[[export]]\ndisk = \"disk0\"\n\
         [[export]]\ndisk = \"disk0\"\nname = \"a b\"\nread_only = true\n",
        socket.display()
    );
    let file = node_file(&folder, &config);
    let shell = "qemu-io -f raw -c 'write 0 4k' \"$HEADSTACK_URI_A_B\" 2>&1; qemu-io -f raw -c 'write 0 4k' \"$HEADSTACK_URI\"";
    let done = run(&[text(&file)], shell);
    assert_eq!(done.code, 0, "{}{}", done.out, done.err);
    assert!(
        done.err.contains("nbd+unix:///a%20b?socket=") && done.err.contains(" (read-only)"),
        "{}",
        done.err
    );
    assert!(done.out.contains("Permission denied"), "{}", done.out);
    assert!(done.out.contains("wrote 4096/4096"), "{}", done.out);
}

#[test]
fn top_shows_every_disk_of_the_node() {
    let folder = folder();
    let top = env!("CARGO_BIN_EXE_headstack");
    // The figures are served before the command runs; where, the node says on standard error.
    let log = folder.path().join("log");
    let shell = format!(
        "at=$(sed -n 's#metrics: http://\\(.*\\)/metrics.*#\\1#p' {0}); {top} top $at; {top} top --once --sort place http://$at/",
        log.display()
    );
    let mut command = crate::common::command(&[
        "serve",
        "--disk",
        "memory:64M",
        "--emulate",
        "null",
        "--metrics",
        "127.0.0.1:0",
        "--",
        "sh",
        "-c",
        &shell,
    ]);
    let file = fs::File::create(&log).expect("the folder is writable");
    let done = command.stderr(file).output().expect("the command starts");
    let out = String::from_utf8(done.stdout).expect("it prints text");
    assert!(done.status.success(), "{out}{}", fs::read_to_string(&log).unwrap_or_default());
    for part in ["2 disks   0 clients   0 in flight", "disk   streams  turn  wait", "disk0: R ", "disk1: R "]
    {
        assert_eq!(out.matches(part).count(), 2, "{part} in {out}");
    }
}

#[test]
fn node_prints_disk_lines_and_ends_after_its_duration() {
    let folder = folder();
    let socket = format!("unix:{}", folder.path().join("nbd").display());
    let args = ["serve", "--disk", "memory:1M", "--nbd", &socket, "--stats=50ms", "--duration", "200ms"];
    let done = headstack(&args);
    assert_eq!(done.code, 0, "{}", done.err);
    for part in ["disk0 | 0 clients, 0 in flight", "0 B of 8 MiB", "hits 0 %", "busy 0 %"] {
        assert!(done.err.contains(part), "{part} in {}", done.err);
    }
    assert!(done.out.contains("requests             none"), "{}", done.out);
    assert!(!folder.path().join("nbd").exists(), "the socket goes with the server");
}

#[test]
fn export_for_other_clients_is_reported_as_absent() {
    if !has_qemu_io() {
        return;
    }
    let folder = folder();
    let config = format!(
        "listen = [\"unix:{}\"]\n[limits]\nconnections = 8\n[[disk]]\nram_bytes = 1048576\n\
         [[export]]\ndisk = \"disk0\"\nname = \"all\"\n\
         [[export]]\ndisk = \"disk0\"\nname = \"few\"\nallow = [\"192.0.2.0/24\"]\n",
        folder.path().join("nbd").display()
    );
    let file = node_file(&folder, &config);
    let shell = "qemu-io -f raw -r -c 'read 0 4k' \"$HEADSTACK_URI_ALL\"; qemu-io -f raw -r -c 'read 0 4k' \"$HEADSTACK_URI_FEW\" 2>&1";
    let done = run(&[text(&file)], shell);
    assert!(done.code == 1 && done.out.contains("read 4096/4096"), "{}{}", done.out, done.err);
    assert!(done.out.contains("no export `few`") || done.out.contains("not available"), "{}", done.out);
}

#[test]
fn infeasible_guarantee_is_rejected_with_the_reason() {
    if !has_qemu_io() {
        return;
    }
    let folder = folder();
    let config = |response: &str, ability: &str| {
        let socket = folder.path().join("nbd");
        let content = format!(
            "listen = [\"unix:{}\"]\n[[disk]]\nram_bytes = 1048576\n{ability}[[export]]\ndisk = \"disk0\"\n\
             guarantee = {{ rate_bytes_per_s = 20000000, response_ms = {response} }}\n",
            socket.display()
        );
        node_file(&folder, &content)
    };
    let ability = "[disk.ability]\nbandwidth_bytes_per_s = 60000000\npositioning_ms = 10.0\n";
    let without = refused(&["serve", text(&config("200.0", "")), "--check=file"], 2);
    assert!(without.contains("node.toml:6: export[0].guarantee: disk `disk0` has no `ability`"), "{without}");
    let never = refused(&["serve", text(&config("9.0", ability)), "--check=file"], 2);
    assert!(never.contains("it cannot be kept even once: "), "{never}");
    // One is served; a second would leave the disk no time for positioning.
    let shell = "mkfifo \"$0\"; (echo 'read 0 4k'; cat \"$0\" > /dev/null; echo quit) | qemu-io -f raw -r \"$HEADSTACK_URI\" > \"$0.one\" & \
                 n=0; until grep -q 'read 4096' \"$0.one\" || [ $((n += 1)) -gt 1000 ]; do sleep 0.05; done; \
                 qemu-io -f raw -r -c quit \"$HEADSTACK_URI\" 2>&1; qemu-io -f raw -r -c quit \"$HEADSTACK_URI\" 2>&1; \
                 echo > \"$0\"; wait; qemu-io -f raw -r -c 'read 0 4k' \"$HEADSTACK_URI\"";
    let pipe = folder.path().join("pipe");
    let file = config("200.0", ability);
    let done = headstack(&["serve", text(&file), "--", "sh", "-c", shell, text(&pipe)]);
    assert_eq!(done.code, 0, "{}{}", done.out, done.err);
    assert!(done.out.contains("server reported: "), "{}{}", done.out, done.err);
    assert!(
        done.err.contains("each connection is promised 20.0 MB a second within 200.0 ms"),
        "{}",
        done.err
    );
}

#[test]
fn check_opens_what_the_node_would_open() {
    let folder = folder();
    let disk = folder.path().join("disk");
    fs::File::create(&disk).and_then(|file| file.set_len(1 << 20)).expect("there is room");
    let config = |more: &str| node_file(&folder, &format!("listen = [\"unix:x\"]\n{more}"));
    let wrong = [
        ("[[disk]]\npath = \"/nowhere/disk\"\n", "/nowhere/disk: No such file"),
        (
            "[tls]\ncertificate = \"/nowhere/c\"\nkey = \"k\"\n[[disk]]\nram_bytes = 4096\n",
            "tls.certificate: /nowhere/c",
        ),
        ("metrics = \"-inf.0.1:20831\"\n[[disk]]\nram_bytes = 4096\n", "metrics -inf.0.1:20831: "),
        ("[[disk]]\nram_bytes = 4096\nmap = \"/nowhere/map\"\n", "/nowhere/map"),
        ("[[disk]]\nemulate = \"wd800jj\"\n", "did you mean `wd800jd`?"),
    ];
    for (text_of, error) in wrong {
        let file = config(text_of);
        let said = refused(&["serve", text(&file), "--check"], 2);
        assert!(said.contains(error), "{text_of}: {said}");
        assert!(printed(&["serve", text(&file), "--check=file"]).starts_with("ok: 1 disk"), "{text_of}");
    }
    let both = [
        ("[[disk]]\npath = \"memory:1G\"\n", "a disk in memory is `ram_bytes = BYTES`"),
        ("[[disk]]\nram_bytes = 1125899906842624\n", "1 PiB of memory cannot be held"),
        (
            "[[disk]]\nram_bytes = 4096\n[[export]]\ndisk = \"disk0\"\nguarantee = { rate_bytes_per_s = 1, response_ms = inf }\n",
            "guarantee.response_ms: inf is outside 0 (not included) to 86400000",
        ),
    ];
    for (text_of, error) in both {
        let said = refused(&["serve", text(&config(text_of)), "--check=file"], 2);
        assert!(said.contains(error), "{text_of}: {said}");
    }
    let file = config(&format!("[[disk]]\npath = \"{}\"\n", disk.display()));
    assert!(!printed(&["serve", text(&file), "--check"]).contains("not opened"));
    let held = fs::File::open(&disk).expect("it is there");
    // The system may release the lock of the process before some moments after its end.
    held.lock().expect("it is free soon");
    let said = printed(&["serve", text(&file), "--check"]);
    assert!(said.contains("  not opened: ") && said.contains(" has it as a disk"), "{said}");
}

#[test]
fn disk_can_be_emulated_as_soon_as_a_node_has_ended() {
    let folder = folder();
    let disk = folder.path().join("disk");
    let made = headstack(&["emulate", "wd800jd", "--data", text(&disk), "--", "true"]);
    assert_eq!(made.code, 0, "{}", made.err);
    for _ in 0..3 {
        let served = headstack(&["serve", "--disk", text(&disk), "--", "true"]);
        assert_eq!(served.code, 0, "{}", served.err);
        // The file's mark is not a part of the disk.
        assert!(served.err.contains("; 80.0 GB; "), "{}", served.err);
        let emulated = headstack(&["emulate", "wd800jd", "--data", text(&disk), "--", "true"]);
        assert_eq!(emulated.code, 0, "{}", emulated.err);
    }
}

#[test]
fn too_few_open_files_are_reported_at_the_start() {
    let serve = |limit: u32| {
        let shell = format!("ulimit -n {limit}; exec \"$0\" serve --disk memory:8M -- true");
        let output =
            std::process::Command::new("sh").args(["-c", &shell, env!("CARGO_BIN_EXE_headstack")]).output();
        let output = output.expect("sh runs");
        (output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned())
    };
    let (code, said) = serve(24);
    assert!(code == Some(2) && said.contains("the limit of open files is 24, and more than "), "{said}");
    let (code, said) = serve(200);
    assert!(code == Some(0) && said.contains("the limit of open files is 200: at most "), "{said}");
}
