//! *What does a test need that a machine may lack?* Programs, root privileges, devices, reference data.
//!
//! A test asks here for what it needs and returns early where that is missing. Each skip is recorded in two places: on standard
//! error, which the test harness does not capture when it is written to directly, and in the file that `HEADSTACK_SKIPPED`
//! names, one line a skip: test, tab, reason. `scripts/run-tests` prints that file when all tests have run.
//!
//! With `HEADSTACK_REQUIRE_TOOLS=1`, which continuous integration sets, a missing program fails the test. Root, devices and
//! reference data are never required: no package brings them.

use std::env;
use std::fmt::Display;
use std::fs::OpenOptions;
use std::io::{self, Write};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{SystemTime, UNIX_EPOCH};

/// The folders to search for programs, as a value of `PATH`. A user's `PATH` may lack some of them.
pub const PROGRAM_FOLDERS: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/// The file to which skips are appended.
const SKIPPED: &str = "HEADSTACK_SKIPPED";
/// Set to `1` where a missing program has to fail a test.
const REQUIRE_TOOLS: &str = "HEADSTACK_REQUIRE_TOOLS";
/// Set to `1` where long tests run all their cases.
const LONG: &str = "HEADSTACK_LONG";
/// The part of long tests that runs in place of the day's.
const PART: &str = "HEADSTACK_PART";
/// The folder with the reference data.
const REFERENCE: &str = "HEADSTACK_REFERENCE";

/// Whether all these programs are installed. Records a skip where one is not.
///
/// # Panics
///
/// A program is missing and programs are required.
#[must_use]
pub fn have_programs(programs: &[&str]) -> bool {
    let Some(program) = missing_program(programs, PROGRAM_FOLDERS) else { return true };
    let is_required = env::var_os(REQUIRE_TOOLS).is_some_and(|value| value == "1");
    assert!(
        !is_required,
        "{program} is not installed, and {REQUIRE_TOOLS}=1: run scripts/install-test-packages"
    );
    skip(format_args!("{program} is not installed (scripts/install-test-packages)"));
    false
}

/// Whether a tool is usable whose presence [`have_programs`] cannot check. `found` is the result of the caller's check, with the reason if the
/// tool is not usable. Records a skip in that case.
///
/// # Panics
///
/// It is not usable and programs are required.
#[must_use]
pub fn have_tool(name: &str, found: Result<(), String>) -> bool {
    let Err(reason) = found else { return true };
    let is_required = env::var_os(REQUIRE_TOOLS).is_some_and(|value| value == "1");
    assert!(!is_required, "{name}: {reason}, and {REQUIRE_TOOLS}=1");
    skip(format_args!("{name}: {reason}"));
    false
}

/// Whether the test runs as root. Records a skip if it does not.
#[must_use]
pub fn have_root() -> bool {
    // The owner of this process's entry is its effective user.
    let is_root = Path::new("/proc/self").metadata().is_ok_and(|entry| is_owned_by_root(&entry));
    if !is_root {
        skip("the test does not run as root");
    }
    is_root
}

/// Whether all these device files exist. Records a skip where one does not.
#[must_use]
pub fn have_devices(devices: &[&str]) -> bool {
    let missing = devices.iter().find(|device| !Path::new(device).exists());
    if let Some(device) = missing {
        skip(format_args!("there is no {device}"));
    }
    missing.is_none()
}

/// A file or folder of the reference data; nothing, and a recorded skip, where `HEADSTACK_REFERENCE` is not set.
#[must_use]
pub fn reference_data(inside: &str) -> Option<PathBuf> {
    let folder = env::var_os(REFERENCE);
    if folder.is_none() {
        skip(format_args!("{REFERENCE} does not name the folder with the reference data"));
    }
    folder.map(|folder| Path::new(&folder).join(inside))
}

/// The cases of a long test that run now: one of `parts` equal parts, another each day, or all with `HEADSTACK_LONG=1`. Says on standard
/// error which part it is, and how to run it again (`HEADSTACK_PART`).
///
/// # Panics
///
/// `HEADSTACK_PART` is not the number of a part, from 0 on.
#[must_use]
pub fn todays_part(cases: u64, parts: u64) -> Range<u64> {
    if env::var_os(LONG).is_some_and(|value| value == "1") {
        return 0..cases;
    }
    let part = env::var_os(PART).map_or_else(
        || days_since_1970() % parts,
        |text| {
            let number = text.to_str().and_then(|text| text.parse().ok());
            number.unwrap_or_else(|| panic!("{PART}: {} is not a number", text.display()))
        },
    );
    assert!(part < parts, "{PART}: {part} (allowed: 0 to {})", parts - 1);
    let _ = writeln!(
        io::stderr(),
        "part {part} of {parts} of {}: {PART}={part} repeats it, {LONG}=1 runs all",
        test_name()
    );
    part_of(cases, part, parts)
}

/// As [`todays_part`], of these cases.
#[must_use]
pub fn todays_cases<T>(cases: &[T], parts: u64) -> &[T] {
    let part = todays_part(cases.len() as u64, parts);
    &cases[part.start as usize..part.end as usize]
}

/// The cases of a part: all parts together have each case once.
fn part_of(cases: u64, part: u64, parts: u64) -> Range<u64> {
    cases * part / parts..cases * (part + 1) / parts
}

#[allow(clippy::disallowed_methods, reason = "the part changes with the day")]
fn days_since_1970() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs() / 86_400)
}

/// Records that the running test is skipped, or skips a part of what it checks.
///
/// # Panics
///
/// The file for the record cannot be written.
pub fn skip(reason: impl Display) {
    let line = entry(&test_name(), &reason.to_string());
    // The harness captures `eprintln!`, but not a direct write to standard error.
    let _ = write!(io::stderr(), "skipped: {}", line.replace('\t', ": "));
    if let Some(file) = env::var_os(SKIPPED) {
        let file = Path::new(&file);
        append(file, &line).unwrap_or_else(|error| panic!("{SKIPPED}={}: {error}", file.display()));
    }
}

/// The first program that is in none of the folders.
fn missing_program<'a>(programs: &[&'a str], folders: &str) -> Option<&'a str> {
    let is_here = |program: &str| folders.split(':').any(|folder| Path::new(folder).join(program).exists());
    programs.iter().copied().find(|program| !is_here(program))
}

fn is_owned_by_root(entry: &std::fs::Metadata) -> bool {
    use std::os::unix::fs::MetadataExt;
    entry.uid() == 0
}

/// The names of the crate, the test file and the test. The harness names a thread after its test, unless the test runs in the main thread.
fn test_name() -> String {
    let program = env::args_os().next().map(PathBuf::from).unwrap_or_default();
    let program = program.file_name().unwrap_or_default().to_string_lossy().into_owned();
    // Cargo adds a hash to the name.
    let program = program.rsplit_once('-').map_or(program.as_str(), |(name, _)| name);
    let test = thread::current().name().unwrap_or("a thread without a name").to_string();
    match env::var_os("CARGO_PKG_NAME") {
        Some(package) => format!("{} {program} {test}", package.to_string_lossy()),
        None => format!("{program} {test}"),
    }
}

/// A line of the record.
fn entry(test: &str, reason: &str) -> String {
    let in_one_line = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
    format!("{}\t{}\n", in_one_line(test), in_one_line(reason))
}

/// Appends a line in one write, so that lines of tests that run at the same time do not mix.
fn append(file: &Path, line: &str) -> io::Result<()> {
    OpenOptions::new().append(true).create(true).open(file)?.write_all(line.as_bytes())
}

#[cfg(test)]
#[allow(clippy::disallowed_methods, reason = "the tests look into files")]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn parts_have_each_case_once() {
        let cases: Vec<u64> = (0..7).flat_map(|part| part_of(100, part, 7)).collect();
        assert_eq!(cases, (0..100).collect::<Vec<u64>>());
    }

    #[test]
    fn first_missing_program_is_named() {
        let folder = tempfile::tempdir().expect("temporary files can be made");
        fs::File::create(folder.path().join("here")).expect("the folder is writable");
        let folders = format!("/nowhere:{}", folder.path().display());
        assert_eq!(missing_program(&["here"], &folders), None);
        assert_eq!(missing_program(&["here", "one", "two"], &folders), Some("one"));
    }

    #[test]
    fn record_keeps_one_line_for_each_skip() {
        let folder = tempfile::tempdir().expect("temporary files can be made");
        let file = folder.path().join("skipped.txt");
        append(&file, &entry("crate tests a", "no loop device:\n\tbusy")).expect("the folder is writable");
        append(&file, &entry("crate tests b", "no fio")).expect("the folder is writable");
        let text = fs::read_to_string(&file).expect("it was written");
        assert_eq!(text, "crate tests a\tno loop device: busy\ncrate tests b\tno fio\n");
    }

    #[test]
    fn test_is_named_with_the_program_that_holds_it() {
        let name = test_name();
        // With one test at a time the harness runs it in the main thread.
        let is_named =
            [" main", "::test_is_named_with_the_program_that_holds_it"].iter().any(|end| name.ends_with(end));
        assert!(name.contains("headstack_prerequisites ") && is_named, "{name}");
    }
}
