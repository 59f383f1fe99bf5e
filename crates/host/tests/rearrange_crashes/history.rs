//! What each sector may hold after a crash: the content that was flushed last, or any that was written since.

/// A content of a sector.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Version {
    value: u64,
    /// When its write was answered; `None` while it is pending.
    answered: Option<u64>,
}

/// The contents of all sectors that clients see.
pub(crate) struct History {
    sectors: Vec<Vec<Version>>,
}

impl History {
    pub(crate) fn new(sectors: u64) -> History {
        History { sectors: vec![vec![Version { value: 0, answered: Some(0) }]; sectors as usize] }
    }

    fn run(&mut self, (first, sectors): (u64, u64)) -> &mut [Vec<Version>] {
        &mut self.sectors[first as usize..(first + sectors) as usize]
    }

    pub(crate) fn begin_write(&mut self, run: (u64, u64), value: u64) {
        self.run(run).iter_mut().for_each(|versions| versions.push(Version { value, answered: None }));
    }

    /// A write was answered. With FUA, it is durable.
    pub(crate) fn end_write(&mut self, run: (u64, u64), now: u64, fua: bool) {
        for versions in self.run(run) {
            let last = versions.last_mut().expect("the write is there");
            last.answered = Some(now);
            if fua {
                versions.drain(..versions.len() - 1);
            }
        }
    }

    /// A flush that began at this time was answered: what had been answered before is durable.
    pub(crate) fn end_flush(&mut self, begun: u64) {
        for versions in &mut self.sectors {
            let is_durable = |version: &Version| version.answered.is_some_and(|at| at < begun);
            if let Some(durable) = versions.iter().rposition(is_durable) {
                versions.drain(..durable);
            }
        }
    }

    /// The content that was written last.
    pub(crate) fn newest(&self, sector: u64) -> u64 {
        self.sectors[sector as usize].last().expect("a sector has a content").value
    }

    /// Checks what a sector holds after a crash, which is its content from then on.
    pub(crate) fn settle(&mut self, sector: u64, value: u64) {
        let versions = &mut self.sectors[sector as usize];
        assert!(
            versions.iter().any(|version| version.value == value),
            "sector {sector} has {value} after a crash, not one of {versions:?}"
        );
        *versions = vec![Version { value, answered: Some(0) }];
    }

    pub(crate) fn sectors(&self) -> u64 {
        self.sectors.len() as u64
    }
}
