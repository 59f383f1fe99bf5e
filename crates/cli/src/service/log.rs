//! The log of a long-running command: a line per event on standard error, as text or JSON.
//!
//! A thread writes the lines, so that no disk waits for their reader. Lines above a given rate are dropped and counted, so that bad clients
//! cannot flood the log.

use crate::failure::Failure;
use humantime::format_rfc3339_millis;
use log::{Level, LevelFilter, Log, Metadata, Record};
use serde::Serialize;
use std::io::{Write, stderr};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::thread;
use std::time::{Duration, SystemTime};

/// Decisions of a node's scheduler.
pub(crate) const STREAMS: &str = "streams";

/// The command itself.
pub(crate) const SERVICE: &str = "service";

/// Targets whose lines are written. Lines of libraries are not for users.
const PARTS: [&str; 4] =
    [headstack_host::log_parts::CLIENT, headstack_host::log_parts::DISK, STREAMS, SERVICE];

/// Maximum number of lines that wait to be written; further ones are dropped.
const WAITING: usize = 1024;

/// Maximum characters of a line, because clients determine parts of it.
const LONGEST: usize = 500;

#[derive(clap::Args)]
pub(crate) struct LogArgs {
    /// Write log lines of this level and above to standard error: off, error, warn, info or debug. [default:
    /// warn]
    #[arg(long, value_name = "LEVEL", value_parser = level)]
    log: Option<LevelFilter>,
    /// Also log clients that connect and disconnect (--log info); given twice, also the scheduler's decisions
    /// (--log debug).
    #[arg(short, action = clap::ArgAction::Count, conflicts_with = "log")]
    verbose: u8,
    /// Format of the log lines: for people, or one JSON object per line for programs.
    #[arg(long, value_name = "FORMAT", value_enum, default_value = "text")]
    log_format: LogFormat,
}

/// Format of lines.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum LogFormat {
    /// Time, level, part and message.
    Text,
    /// The same as a JSON object.
    Json,
}

fn level(text: &str) -> Result<LevelFilter, String> {
    let levels = ["off", "error", "warn", "info", "debug"];
    match text.parse() {
        Ok(level) if levels.contains(&text) => Ok(level),
        _ => Err(format!("must be one of {}", levels.join(", "))),
    }
}

impl LogArgs {
    /// Starts the log.
    pub(crate) fn start(&self) -> Result<(), Failure> {
        let level = self.log.unwrap_or(match self.verbose {
            0 => LevelFilter::Warn,
            1 => LevelFilter::Info,
            _ => LevelFilter::Debug,
        });
        let (sender, receiver) = sync_channel(WAITING);
        let format = self.log_format;
        let write = move || Writer { format, limits: Limits::default() }.run(&receiver);
        let fault = |error| Failure::Input(format!("log: {error}"));
        thread::Builder::new().name("log".to_string()).spawn(write).map_err(fault)?;
        let sink = Sink { sender, left_out: AtomicU64::new(0) };
        // The log exists until the process ends.
        if log::set_logger(Box::leak(Box::new(sink))).is_ok() {
            log::set_max_level(level);
        }
        Ok(())
    }
}

struct Line {
    at: SystemTime,
    level: Level,
    part: String,
    message: String,
    /// Number of lines that were dropped before this one.
    left_out: u64,
}

enum Message {
    Line(Line),
    /// A request to report once all earlier lines are written.
    Flush(SyncSender<()>),
}

struct Sink {
    sender: SyncSender<Message>,
    left_out: AtomicU64,
}

impl Log for Sink {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        PARTS.contains(&metadata.target())
    }

    fn log(&self, record: &Record<'_>) {
        if !self.enabled(record.metadata()) {
            return;
        }
        #[allow(clippy::disallowed_methods, reason = "people read when it happened")]
        let at = SystemTime::now();
        let line = Line {
            at,
            level: record.level(),
            part: record.target().to_string(),
            message: printable(&record.args().to_string()),
            left_out: self.left_out.swap(0, Ordering::Relaxed),
        };
        let left_out = line.left_out;
        if self.sender.try_send(Message::Line(line)).is_err() {
            self.left_out.fetch_add(left_out + 1, Ordering::Relaxed);
        }
    }

    fn flush(&self) {
        let (tell, reported) = sync_channel(1);
        if self.sender.try_send(Message::Flush(tell)).is_ok() {
            // The reader of the lines may be blocked.
            let _ = reported.recv_timeout(Duration::from_secs(1));
        }
    }
}

/// A message without terminal commands, and of limited length.
fn printable(message: &str) -> String {
    let mut shown = String::new();
    for (count, letter) in message.chars().enumerate() {
        if count == LONGEST {
            shown.push('…');
            break;
        }
        if letter.is_control() { shown.extend(letter.escape_default()) } else { shown.push(letter) }
    }
    shown
}

struct Writer {
    format: LogFormat,
    limits: Limits,
}

impl Writer {
    /// Time without a line after which the number of dropped lines is reported.
    const QUIET: Duration = Duration::from_secs(2);

    fn run(mut self, lines: &Receiver<Message>) {
        loop {
            match lines.recv_timeout(Writer::QUIET) {
                Ok(Message::Line(line)) => self.write_line(line),
                Ok(Message::Flush(tell)) => {
                    self.tell_left_out();
                    // The sender may have stopped waiting.
                    let _ = tell.send(());
                }
                Err(RecvTimeoutError::Timeout) => self.tell_left_out(),
                Err(RecvTimeoutError::Disconnected) => return,
            }
        }
    }

    fn write_line(&mut self, line: Line) {
        self.limits.left_out += line.left_out;
        if self.limits.admits(&line) {
            self.tell_left_out();
            self.write(&line);
        }
    }

    fn tell_left_out(&mut self) {
        let count = std::mem::take(&mut self.limits.left_out);
        if count > 0 {
            let message = format!("{count} more lines were left out, which came too fast");
            let (level, part) = (Level::Warn, SERVICE.to_string());
            #[allow(clippy::disallowed_methods, reason = "people read when it happened")]
            let at = SystemTime::now();
            self.write(&Line { at, level, part, message, left_out: 0 });
        }
    }

    fn write(&self, line: &Line) {
        // There is no other place to report a failure.
        let _ = writeln!(stderr(), "{}", text(line, self.format));
    }
}

fn text(Line { at, level, part, message, .. }: &Line, format: LogFormat) -> String {
    #[derive(Serialize)]
    struct Json<'a> {
        time: String,
        level: String,
        part: &'a str,
        message: &'a str,
    }
    let (time, level) = (format_rfc3339_millis(*at).to_string(), level.as_str().to_lowercase());
    match format {
        LogFormat::Text => format!("{time} {level:<5} {part}: {message}"),
        LogFormat::Json => serde_json::to_string(&Json { time, level, part, message })
            .expect("texts are expressible in JSON"),
    }
}

/// Limits of the rate of lines: a burst, and a number per second.
struct Limits {
    warnings: Bucket,
    others: Bucket,
    left_out: u64,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits { warnings: Bucket::new(20, 2), others: Bucket::new(500, 100), left_out: 0 }
    }
}

impl Limits {
    /// Whether to write a line; counts those that are dropped.
    fn admits(&mut self, line: &Line) -> bool {
        let bucket = if line.level <= Level::Warn { &mut self.warnings } else { &mut self.others };
        let is_admitted = bucket.allows(line.at);
        self.left_out += u64::from(!is_admitted);
        is_admitted
    }
}

/// Number of lines of a kind that may still be written.
struct Bucket {
    most: u64,
    a_second: u64,
    left: u64,
    filled: Option<SystemTime>,
}

impl Bucket {
    fn new(most: u64, a_second: u64) -> Bucket {
        Bucket { most, a_second, left: most, filled: None }
    }

    fn allows(&mut self, now: SystemTime) -> bool {
        let filled = *self.filled.get_or_insert(now);
        let seconds = now.duration_since(filled).map_or(0, |time| time.as_secs());
        if seconds > 0 {
            self.left = self.left.saturating_add(seconds.saturating_mul(self.a_second)).min(self.most);
            self.filled = Some(now);
        }
        let is_left = self.left > 0;
        self.left -= u64::from(is_left);
        is_left
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(seconds: u64, level: Level, message: &str) -> Line {
        let at = SystemTime::UNIX_EPOCH + Duration::from_secs(seconds);
        Line { at, level, part: "client".to_string(), message: printable(message), left_out: 0 }
    }

    #[test]
    fn warning_flood_is_limited_and_counted() {
        let mut limits = Limits::default();
        let written = (0..1000).filter(|_| limits.admits(&line(100, Level::Warn, "x"))).count();
        assert_eq!((written, limits.left_out), (20, 980));
        assert!(limits.admits(&line(100, Level::Info, "who comes is said all the same")));
        let later = (0..100).filter(|_| limits.admits(&line(103, Level::Warn, "x"))).count();
        assert_eq!(later, 6, "two for each second since");
        let much_later = (0..100).filter(|_| limits.admits(&line(9_000, Level::Warn, "x"))).count();
        assert_eq!(much_later, 20);
    }

    #[test]
    fn client_text_is_escaped_and_truncated_in_log_lines() {
        let long = format!("export `\x1b]0;owned\x07\n{}`", "a".repeat(100_000));
        let shown = text(&line(0, Level::Warn, &long), LogFormat::Text);
        assert!(
            shown.starts_with("1970-01-01T00:00:00.000Z warn  client: export `\\u{1b}]0;owned\\u{7}\\naaa"),
            "{shown}"
        );
        assert!(shown.chars().count() < 600 && shown.ends_with('…'));
        assert!(!shown.chars().any(char::is_control));
        let json = text(&line(0, Level::Info, "\"quoted\""), LogFormat::Json);
        let parsed: serde_json::Value = serde_json::from_str(&json).expect("it is JSON");
        assert_eq!(
            (parsed["level"].as_str(), parsed["message"].as_str()),
            (Some("info"), Some("\"quoted\""))
        );
    }

    #[test]
    fn unknown_log_level_is_rejected() {
        assert_eq!(level("debug"), Ok(LevelFilter::Debug));
        assert_eq!(level("loud"), Err("must be one of off, error, warn, info, debug".to_string()));
        assert!(level("trace").is_err() && level("WARN").is_err());
    }
}
