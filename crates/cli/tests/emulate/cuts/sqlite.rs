//! SQLite on ext4: committed rows must survive, with a rollback journal and with a write-ahead log.
//!
//! With a write-ahead log, `synchronous = FULL` suffices: each commit syncs the log. With a rollback journal, a transaction commits when the
//! journal is deleted, and only `EXTRA` syncs the deletion. With `FULL`, a power cut may roll back the last row, and in tests it did.
//!
//! *Source:* SQLite's documentation of `PRAGMA synchronous`.

use super::{Disk, LIAR, Power, Witness, caught, live_through, must};
use crate::device::Loop;
use crate::emulator::Emulator;
use crate::tools::{attempt, have_loops_and, program, run, text};
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, Stdio};

const PROGRAMS: [&str; 3] = ["mkfs.ext4", "e2fsck", "sqlite3"];

struct Database {
    /// SQLite's `journal_mode`.
    mode: &'static str,
    /// SQLite's `synchronous`.
    synchronous: &'static str,
    /// Rows 1 to this one are committed.
    safe: u64,
}

/// The text of a row: its number with 1200 digits, so that a page of 4096 bytes has room for three rows.
const ROW: &str = "printf('%01200d', id)";

/// Returns the number of the last row, the number of rows, and the number of rows that hold the text they were written with.
const LOOK: &str =
    "PRAGMA integrity_check; SELECT coalesce(max(id), 0), count(*), count(*) FILTER (WHERE text = ";

/// A running SQLite shell. Dropping this value kills it.
struct Shell(Child);

impl Drop for Shell {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl Database {
    fn with_journal() -> Database {
        Database { mode: "delete", synchronous: "extra", safe: 0 }
    }

    fn with_log() -> Database {
        Database { mode: "wal", synchronous: "full", safe: 0 }
    }

    /// Adds the next row. Returns whether it was committed.
    fn commit(
        &mut self,
        shell: &mut Shell,
        said: &mut impl Iterator<Item = std::io::Result<String>>,
    ) -> bool {
        let id = self.safe + 1;
        let command =
            format!("INSERT INTO rows SELECT id, {ROW} FROM (SELECT {id} AS id);\nSELECT 'safe', {id};\n");
        let asked = shell.0.stdin.as_mut().expect("it is a pipe").write_all(command.as_bytes());
        let heard = asked.is_ok() && matches!(said.next(), Some(Ok(line)) if line == format!("safe|{id}"));
        self.safe += u64::from(heard);
        heard
    }
}

impl Witness for Database {
    const SPEED: &str = "10";
    const MOUNTED: bool = true;

    fn prepare(&mut self, emulator: &Emulator) {
        let device = Loop::over(&emulator.file());
        run("mkfs.ext4", &["-q", "-F", device.device(), "1g"]);
        let Disk { mount, device } = Disk::mount(emulator).expect("it was just made");
        let path = mount.path().join("database");
        let create =
            format!("PRAGMA journal_mode = {}; CREATE TABLE rows (id INTEGER PRIMARY KEY, text);", self.mode);
        run("sqlite3", &[text(&path), &create]);
        mount.unmount();
        drop(device);
    }

    fn work(&mut self, emulator: &Emulator, power: &mut Power) {
        let disk = Disk::mount(emulator).expect("it was mounted before");
        let path = disk.mount.path().join("database");
        let settings =
            format!("PRAGMA journal_mode = {}; PRAGMA synchronous = {};", self.mode, self.synchronous);
        let mut command = program("sqlite3", &["-batch", "-bail", "-cmd", &settings, text(&path)]);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut shell = Shell(command.spawn().expect("it is here"));
        let mut said = BufReader::new(shell.0.stdout.take().expect("it is a pipe")).lines();
        let mode = said.next().and_then(Result::ok).unwrap_or_default();
        assert!(mode.eq_ignore_ascii_case(self.mode), "SQLite's journal is {mode:?}");
        while self.commit(&mut shell, &mut said) {
            power.safe();
        }
    }

    fn check(&mut self, emulator: &Emulator) -> Result<(), String> {
        let Disk { mount, device } = Disk::mount(emulator)?;
        let path = mount.path().join("database");
        let found = attempt("sqlite3", &[text(&path), &format!("{LOOK}{ROW}) FROM rows;")])?;
        let (verdict, rows) = found.trim().split_once('\n').ok_or(found.as_str())?;
        let rows: Vec<u64> = rows.split('|').filter_map(|number| number.parse().ok()).collect();
        // The row that was being committed at the cut may be there or not.
        if verdict != "ok" || rows[0] < self.safe || rows[0] > self.safe + 1 || rows[1..] != [rows[0]; 2] {
            return Err(format!(
                "integrity: {verdict}; last row, rows, whole rows: {rows:?}; {} are safe",
                self.safe
            ));
        }
        self.safe = rows[0];
        mount.unmount();
        attempt("e2fsck", &["-f", "-n", device.device()]).map(drop)
    }
}

#[test]
fn rows_committed_by_journal_survive_power_cuts() {
    if have_loops_and(&PROGRAMS) {
        must(live_through(Database::with_journal(), 2, 20, None));
    }
}

#[test]
fn rows_committed_by_log_survive_power_cuts() {
    if have_loops_and(&PROGRAMS) {
        must(live_through(Database::with_log(), 2, 20, None));
    }
}

#[test]
fn sqlite_exposes_a_disk_that_ignores_flush() {
    if have_loops_and(&PROGRAMS) {
        caught(live_through(Database::with_log(), 5, 20, LIAR));
    }
}

#[test]
#[ignore = "the long form: make cuts-real"]
fn committed_rows_survive_30_power_cuts() {
    if have_loops_and(&PROGRAMS) {
        must(live_through(Database::with_journal(), 15, 60, None));
        must(live_through(Database::with_log(), 15, 60, None));
    }
}
