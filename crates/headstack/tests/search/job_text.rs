//! A load as the text of a fio job file: what users write is what is drawn, changed, shrunk and kept.

use std::fmt::{self, Display, Formatter};

/// Keys that every load of the search has, because they stand above what a case says.
const COMMON: &str = "[global]\nfilename=/dev/sda\nioengine=libaio\ndirect=1\n";

type Keys = Vec<(String, String)>;

/// One to four jobs of a fio job file, and the keys that all of them share.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct JobText {
    /// Keys of all jobs, in addition to [`COMMON`].
    pub(crate) shared: Keys,
    pub(crate) jobs: Vec<JobKeys>,
}

/// A job's section.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct JobKeys {
    pub(crate) name: String,
    pub(crate) keys: Keys,
}

/// Sets a key, in its place if it is there.
fn put(keys: &mut Keys, key: &str, value: String) {
    match keys.iter_mut().find(|(name, _)| name == key) {
        Some(found) => found.1 = value,
        None => keys.push((key.to_string(), value)),
    }
}

fn value<'a>(keys: &'a Keys, key: &str) -> Option<&'a str> {
    keys.iter().find(|(name, _)| name == key).map(|(_, value)| value.as_str())
}

/// A number with fio's suffixes k, m and g.
fn number(text: &str) -> Option<u64> {
    let factor = match text.bytes().last()? {
        b'k' => 1 << 10,
        b'm' => 1 << 20,
        b'g' => 1 << 30,
        _ => return text.parse().ok(),
    };
    Some(text[..text.len() - 1].parse::<u64>().ok()? * factor)
}

/// Bytes with the largest of fio's suffixes that divides them.
pub(crate) fn bytes(count: u64) -> String {
    let units = [(30, "g"), (20, "m"), (10, "k")];
    let whole = units.iter().find(|(bits, _)| count > 0 && count.is_multiple_of(1 << bits));
    whole.map_or_else(|| count.to_string(), |(bits, suffix)| format!("{}{suffix}", count >> bits))
}

impl JobKeys {
    pub(crate) fn new(name: &str) -> JobKeys {
        JobKeys { name: name.to_string(), keys: Vec::new() }
    }

    /// The job with this key.
    pub(crate) fn with(mut self, key: &str, value: impl ToString) -> JobKeys {
        put(&mut self.keys, key, value.to_string());
        self
    }

    /// The job without this key.
    pub(crate) fn without(mut self, key: &str) -> JobKeys {
        self.keys.retain(|(name, _)| name != key);
        self
    }

    pub(crate) fn text(&self, key: &str) -> Option<&str> {
        value(&self.keys, key)
    }

    pub(crate) fn number(&self, key: &str) -> Option<u64> {
        number(self.text(key)?)
    }

    pub(crate) fn depth(&self) -> u64 {
        self.number("iodepth").unwrap_or(1)
    }

    pub(crate) fn block_bytes(&self) -> u64 {
        self.number("bs").unwrap_or(4096)
    }

    pub(crate) fn rw(&self) -> &str {
        self.text("rw").unwrap_or("read")
    }

    pub(crate) fn is_sequential(&self) -> bool {
        !self.rw().starts_with("rand")
    }

    /// Whether it issues a request as soon as one completes, past the page cache.
    pub(crate) fn is_closed(&self) -> bool {
        let slowing = ["rate_iops", "thinktime", "fsync", "fdatasync"];
        slowing.iter().all(|key| self.text(key).is_none()) && self.text("direct") != Some("0")
    }

    pub(crate) fn writes(&self) -> bool {
        !["read", "randread"].contains(&self.rw())
    }

    /// Whether it makes the host send FLUSHes.
    pub(crate) fn flushes(&self) -> bool {
        ["fsync", "fdatasync", "sync", "end_fsync"].iter().any(|key| self.text(key).is_some())
    }
}

impl JobText {
    /// A load of these jobs that counts `seconds`, after a second or more to warm up.
    pub(crate) fn timed(warm_up: u64, seconds: u64, jobs: Vec<JobKeys>) -> JobText {
        let shared = [("time_based", "1".to_string()), ("ramp_time", warm_up.to_string())];
        let shared = shared.into_iter().chain([("runtime", seconds.to_string())]);
        JobText { shared: shared.map(|(key, value)| (key.to_string(), value)).collect(), jobs }
    }

    /// A load whose jobs end by themselves.
    pub(crate) fn whole(jobs: Vec<JobKeys>) -> JobText {
        JobText { shared: Vec::new(), jobs }
    }

    /// Reads a load that was printed.
    pub(crate) fn parse(text: &str) -> JobText {
        let mut load = JobText::default();
        let lines = text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#'));
        for line in lines {
            if let Some(name) = line.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) {
                if name != "global" {
                    load.jobs.push(JobKeys::new(name));
                }
                continue;
            }
            let (key, value) = line.split_once('=').unwrap_or((line, "1"));
            let is_common = load.jobs.is_empty() && COMMON.lines().any(|common| common == line);
            match load.jobs.last_mut() {
                Some(job) => put(&mut job.keys, key, value.to_string()),
                None if is_common => {}
                None => put(&mut load.shared, key, value.to_string()),
            }
        }
        load
    }

    pub(crate) fn shared_number(&self, key: &str) -> Option<u64> {
        number(value(&self.shared, key)?)
    }

    /// The load with another value of a key of all jobs.
    pub(crate) fn with_shared(&self, key: &str, value: impl ToString) -> JobText {
        let mut load = self.clone();
        put(&mut load.shared, key, value.to_string());
        load
    }

    /// The load with this key in each job.
    pub(crate) fn with_each(&self, key: &str, value: impl ToString + Clone) -> JobText {
        self.mapped(|job| job.with(key, value.clone()))
    }

    /// The load without this key in any job.
    pub(crate) fn without_each(&self, key: &str) -> JobText {
        self.mapped(|job| job.without(key))
    }

    fn mapped(&self, change: impl Fn(JobKeys) -> JobKeys) -> JobText {
        JobText { shared: self.shared.clone(), jobs: self.jobs.iter().cloned().map(change).collect() }
    }

    /// The load of these jobs alone.
    pub(crate) fn only(&self, keep: impl Fn(usize) -> bool) -> JobText {
        let jobs = self.jobs.iter().enumerate().filter(|(index, _)| keep(*index));
        JobText { shared: self.shared.clone(), jobs: jobs.map(|(_, job)| job.clone()).collect() }
    }
}

impl Display for JobText {
    fn fmt(&self, out: &mut Formatter<'_>) -> fmt::Result {
        out.write_str(COMMON)?;
        for (key, value) in &self.shared {
            writeln!(out, "{key}={value}")?;
        }
        for job in &self.jobs {
            writeln!(out, "[{}]", job.name)?;
            for (key, value) in &job.keys {
                writeln!(out, "{key}={value}")?;
            }
        }
        Ok(())
    }
}

#[test]
fn printed_load_is_read_back() {
    let reader = JobKeys::new("r").with("rw", "randread").with("bs", bytes(64 << 10)).with("iodepth", 4);
    let load = JobText::timed(1, 5, vec![reader, JobKeys::new("w").with("rw", "write")]);
    assert_eq!(JobText::parse(&load.to_string()), load);
    assert_eq!((load.jobs[0].block_bytes(), load.jobs[0].depth()), (65536, 4));
}
