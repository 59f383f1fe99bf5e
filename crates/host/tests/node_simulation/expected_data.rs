//! What each block of a disk may hold, given the requests and answers so far: it judges reads, and the data that remain at the end.
//!
//! Each write makes a version of its blocks; every word of them has the version and the position. A read may return any version that no
//! other has overruled. Version B overrules version A if B began after A had ended, and ended before the read began. After a crash, any
//! version may remain that no *safe* one has overruled. A version is safe if it was forced and has completed, or if it had completed before
//! a flush began that has completed.

/// Bytes of a block.
pub(crate) const BLOCK: u64 = 512;

/// A write, with its times as counts of events.
#[derive(Clone, Copy, Debug)]
struct Version {
    begun: u64,
    ended: Option<u64>,
    is_done: bool,
    is_forced: bool,
    is_zeros: bool,
}

/// Blocks that clients use.
#[derive(Debug)]
struct Area {
    first: u64,
    /// Versions of each block, but for the zeros that were there before all.
    versions: Vec<Vec<u32>>,
}

/// All that was asked and answered.
#[derive(Debug)]
pub(crate) struct Truth {
    happened: u64,
    areas: Vec<Area>,
    versions: Vec<Version>,
    /// When the last completed flush began.
    flushed: u64,
}

impl Truth {
    /// The state before any request: all blocks are zero. Areas are given by their first blocks and lengths.
    pub(crate) fn new(areas: &[(u64, u64)]) -> Truth {
        let area =
            |&(first, blocks): &(u64, u64)| Area { first, versions: vec![Vec::new(); blocks as usize] };
        let zeros = Version { begun: 0, ended: Some(0), is_done: true, is_forced: true, is_zeros: true };
        Truth { happened: 1, areas: areas.iter().map(area).collect(), versions: vec![zeros], flushed: 0 }
    }

    /// Something begins; returns its event count.
    pub(crate) fn begin(&mut self) -> u64 {
        self.happened += 1;
        self.happened
    }

    /// A write to blocks of an area begins; its version.
    pub(crate) fn begin_write(&mut self, first: u64, blocks: u64, is_forced: bool, is_zeros: bool) -> u32 {
        let begun = self.begin();
        let version = self.versions.len() as u32;
        self.versions.push(Version { begun, ended: None, is_done: false, is_forced, is_zeros });
        let area = self.areas.iter_mut().find(|area| area.first <= first && first < area.end());
        let area = area.expect("clients write in their areas");
        let from = (first - area.first) as usize;
        area.versions[from..from + blocks as usize].iter_mut().for_each(|block| block.push(version));
        version
    }

    /// A write is over.
    pub(crate) fn end_write(&mut self, version: u32, is_done: bool) {
        let ended = Some(self.begin());
        let version = &mut self.versions[version as usize];
        (version.ended, version.is_done) = (ended, is_done);
    }

    /// A flush that began then is done.
    pub(crate) fn end_flush(&mut self, begun: u64) {
        self.happened += 1;
        self.flushed = self.flushed.max(begun);
    }

    /// The bytes of a version.
    pub(crate) fn bytes(version: u32, first: u64, blocks: u64) -> Vec<u8> {
        let words = (first..first + blocks).map(|block| word(version, block).to_le_bytes());
        words.flat_map(|word| word.repeat(BLOCK as usize / 8)).collect()
    }

    /// Judges the result of a read that began at this count.
    ///
    /// *Errors:* what is wrong with it.
    pub(crate) fn check_read(&self, first: u64, bytes: &[u8], begun: u64) -> Result<(), String> {
        let rules = |version: &Version| version.is_done && version.ended.is_some_and(|ended| ended < begun);
        self.check(first, bytes, rules)
    }

    /// Judges the data of all areas after a crash.
    ///
    /// *Errors:* what is wrong with it.
    pub(crate) fn check_left(&self, mut read: impl FnMut(u64, &mut [u8])) -> Result<(), String> {
        let is_safe = |version: &Version| {
            let ended = version.ended.filter(|_| version.is_done);
            ended.is_some_and(|ended| version.is_forced || ended < self.flushed)
        };
        for area in &self.areas {
            let mut bytes = vec![0; area.versions.len() * BLOCK as usize];
            read(area.first * BLOCK, &mut bytes);
            self.check(area.first, &bytes, is_safe)?;
        }
        Ok(())
    }

    /// Checks for each block that its version was overruled by none for which `rules` returns true.
    fn check(&self, first: u64, bytes: &[u8], rules: impl Fn(&Version) -> bool) -> Result<(), String> {
        for (block, found) in (first..).zip(bytes.chunks_exact(BLOCK as usize)) {
            let version = version_in(found, block)?;
            let versions = self.versions_of(block);
            let candidates = versions.iter().filter(|&&other| match version {
                0 => self.versions[other as usize].is_zeros,
                _ => other == version,
            });
            let rulers = || versions.iter().map(|&other| &self.versions[other as usize]).filter(|v| rules(v));
            let holds = |version: u32| {
                let ended = self.versions[version as usize].ended;
                !rulers().any(|ruler| ended.is_some_and(|ended| ended < ruler.begun))
            };
            let before_all = (version == 0).then_some(&0);
            if !before_all.into_iter().chain(candidates).any(|&version| holds(version)) {
                let ruler = versions.iter().rev().find(|&&other| rules(&self.versions[other as usize]));
                return Err(format!(
                    "block {block} holds version {version}, and not {ruler:?} or a later one"
                ));
            }
        }
        Ok(())
    }

    fn versions_of(&self, block: u64) -> &[u32] {
        let area = self.areas.iter().find(|area| area.first <= block && block < area.end());
        area.map_or(&[], |area| &area.versions[(block - area.first) as usize])
    }
}

impl Area {
    fn end(&self) -> u64 {
        self.first + self.versions.len() as u64
    }
}

/// What every word of a block of a version says.
fn word(version: u32, block: u64) -> u64 {
    if version == 0 { 0 } else { u64::from(version) << 40 | block }
}

/// The version that a block's bytes are of; 0 for zeros.
fn version_in(bytes: &[u8], block: u64) -> Result<u32, String> {
    let first = &bytes[..8];
    let value = u64::from_le_bytes(first.try_into().expect("eight"));
    if bytes[8..] != bytes[..bytes.len() - 8] {
        return Err(format!("block {block} is torn within"));
    }
    let version = (value >> 40) as u32;
    if value != word(version, block) {
        return Err(format!("block {block} holds {value:#x}, which never was to it"));
    }
    Ok(version)
}

#[test]
fn stale_or_foreign_bytes_are_rejected_in_a_read() {
    let mut expected_data = Truth::new(&[(8, 4)]);
    let old = expected_data.begin_write(8, 4, false, false);
    expected_data.end_write(old, true);
    let beside = expected_data.begin_write(9, 1, false, false);
    let begun = expected_data.begin();
    let read = |expected_data: &Truth, version, block| {
        expected_data.check_read(block, &Truth::bytes(version, block, 1), begun)
    };
    assert!(
        read(&expected_data, old, 9).is_ok() && read(&expected_data, beside, 9).is_ok(),
        "one of both while one is written"
    );
    assert!(read(&expected_data, 0, 9).is_err(), "the zeros before were overwritten");
    assert!(read(&expected_data, beside, 10).is_err(), "that never was to it");
    assert!(expected_data.check_read(8, &Truth::bytes(old, 9, 1), begun).is_err(), "that is another block's");
    expected_data.end_write(beside, true);
    assert!(read(&expected_data, old, 9).is_ok(), "the read began before");
    let begun = expected_data.begin();
    assert!(expected_data.check_read(9, &Truth::bytes(old, 9, 1), begun).is_err());
}

#[test]
fn loss_of_flushed_bytes_is_rejected() {
    let mut expected_data = Truth::new(&[(0, 1)]);
    let left = |expected_data: &Truth, version| {
        expected_data.check_left(|_, into| into.copy_from_slice(&Truth::bytes(version, 0, 1))).is_ok()
    };
    let first = expected_data.begin_write(0, 1, false, false);
    expected_data.end_write(first, true);
    assert!(left(&expected_data, 0) && left(&expected_data, first), "it was not flushed");
    let flush = expected_data.begin();
    let second = expected_data.begin_write(0, 1, false, false);
    expected_data.end_flush(flush);
    expected_data.end_write(second, true);
    assert!(!left(&expected_data, 0) && left(&expected_data, first) && left(&expected_data, second));
    let third = expected_data.begin_write(0, 1, true, false);
    expected_data.end_write(third, true);
    assert!(!left(&expected_data, second) && left(&expected_data, third));
}
