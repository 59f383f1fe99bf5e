//! The files of a job, and the parts of them that its clones use.

use crate::fio::value::{Amount, Given, Parsed};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::fio) enum ServiceChoice {
    RoundRobin,
    Sequential,
    Random,
}

#[derive(Clone, Copy, Debug)]
pub(in crate::fio) struct Service {
    pub(in crate::fio) choice: ServiceChoice,
    /// Requests to a file before another one is chosen.
    pub(in crate::fio) burst: u64,
}

impl Service {
    /// `file_service_type=random:8`.
    pub(in crate::fio) fn read(given: &Given<'_>) -> Parsed<Service> {
        let (word, burst) = given.head()?;
        let choice = word.word(&[
            ("roundrobin", ServiceChoice::RoundRobin),
            ("sequential", ServiceChoice::Sequential),
            ("random", ServiceChoice::Random),
        ])?;
        let burst = burst.map_or(Ok(1), |burst| burst.count(1, u64::from(u32::MAX)))?;
        Ok(Service { choice, burst })
    }
}

#[derive(Clone, Debug)]
pub(in crate::fio) struct FileNames {
    pub(in crate::fio) list: Option<String>,
    /// The export of an NBD server, for the engine that needs one.
    pub(in crate::fio) uri: Option<String>,
    pub(in crate::fio) folder: Option<String>,
    pub(in crate::fio) format: Option<String>,
    pub(in crate::fio) number: u64,
    pub(in crate::fio) service: Service,
}

impl Default for FileNames {
    fn default() -> FileNames {
        let service = Service { choice: ServiceChoice::RoundRobin, burst: 1 };
        FileNames { list: None, uri: None, folder: None, format: None, number: 1, service }
    }
}

impl FileNames {
    /// Whether neither names nor a number are given.
    pub(in crate::fio) fn are_default(&self) -> bool {
        self.list.is_none() && self.folder.is_none() && self.format.is_none() && self.number == 1
    }

    /// Number of files of one clone.
    pub(in crate::fio) fn count(&self) -> u64 {
        self.list.as_deref().map_or(self.number, |list| split_names(list).len() as u64)
    }

    /// The names of the files of a clone of the job of this section.
    pub(in crate::fio) fn names(&self, section: &str, clone: u64) -> Vec<String> {
        let placed = |name: String| match &self.folder {
            Some(folder) if !name.starts_with('/') => {
                let first = split_names(folder).into_iter().next().unwrap_or_default();
                format!("{}/{name}", first.trim_end_matches('/'))
            }
            _ => name,
        };
        if let Some(list) = &self.list {
            return split_names(list).into_iter().map(placed).collect();
        }
        let format = self.format.as_deref().unwrap_or("$jobname.$jobnum.$filenum");
        let named = format.replace("$jobname", section).replace("$jobnum", &clone.to_string());
        (0..self.number).map(|file| placed(named.replace("$filenum", &file.to_string()))).collect()
    }
}

/// The names of a list, apart by `:`; `\:` is a colon within a name.
pub(in crate::fio) fn split_names(list: &str) -> Vec<String> {
    let mut names = vec![String::new()];
    let mut letters = list.chars().peekable();
    while let Some(letter) = letters.next() {
        let name = names.last_mut().expect("there is a first name");
        match letter {
            '\\' if letters.next_if_eq(&':').is_some() => name.push(':'),
            ':' => names.push(String::new()),
            letter => name.push(letter),
        }
    }
    names.retain(|name| !name.is_empty());
    names
}

/// The part of its files that a clone uses.
#[derive(Clone, Copy, Debug, Default)]
pub(in crate::fio) struct FileArea {
    pub(in crate::fio) size: Amount,
    /// The amount that a clone transfers.
    pub(in crate::fio) io_size: Amount,
    /// Bytes of each file.
    pub(in crate::fio) file_size: Option<(u64, u64)>,
    pub(in crate::fio) offset: Amount,
    /// Added for each further clone.
    pub(in crate::fio) offset_increment: Amount,
    pub(in crate::fio) offset_align: u64,
    /// Whether the job writes until its disk is full.
    pub(in crate::fio) fill: bool,
}

impl FileArea {
    pub(in crate::fio) fn has_size(&self) -> bool {
        self.size.fixed() > 0 || self.file_size.is_some()
    }

    /// Where a clone begins in a file of this length. A start in percent is rounded up to a request.
    pub(in crate::fio) fn start(&self, clone: u64, file_bytes: u64, least: u64) -> u64 {
        let further = self.offset_increment.bytes(file_bytes).saturating_mul(clone);
        let start = self.offset.bytes(file_bytes).saturating_add(further);
        let is_share = |amount: Amount| matches!(amount, Amount::Percent(share) if share > 0);
        if !is_share(self.offset) && !is_share(self.offset_increment) {
            return start;
        }
        let step = if self.offset_align > 0 { self.offset_align } else { least };
        start.checked_next_multiple_of(step).unwrap_or(start)
    }
}
