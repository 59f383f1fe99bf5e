//! Turns an extraction with a disk that answers: a simulated one, an emulated one, a real one.

use crate::{Answer, Extraction, Facts, Probe, Progress};

/// A disk that answers probes.
pub trait Answers {
    /// What may go wrong that is not the disk's own failure.
    type Error;

    /// What is known of it before.
    fn facts(&self) -> Facts;

    /// Asks a probe; no more than [`Facts::depth`] are under way.
    ///
    /// *Errors:* what keeps it from being asked.
    fn ask(&mut self, probe: Probe) -> Result<(), Self::Error>;

    /// Waits for the next answer.
    ///
    /// *Errors:* what keeps it from being answered.
    fn wait(&mut self) -> Result<(Probe, Answer), Self::Error>;
}

/// Runs an extraction to its end; `watch` is shown each answer and how far the extraction is, and ends it with `false`.
///
/// *Errors:* the disk's. Ends with nothing where `watch` ended it.
pub fn run<T, D: Answers>(
    extraction: &mut Extraction<T>,
    disk: &mut D,
    mut watch: impl FnMut(&Probe, &Answer, &Progress) -> bool,
) -> Result<Option<T>, D::Error> {
    let depth = disk.facts().depth;
    let mut under_way = 0;
    loop {
        while under_way < depth
            && let Some(probe) = extraction.next_probe()
        {
            disk.ask(probe)?;
            under_way += 1;
        }
        if under_way == 0 {
            return Ok(extraction.take_found());
        }
        let (probe, answer) = disk.wait()?;
        under_way -= 1;
        if !watch(&probe, &answer, &extraction.progress()) {
            return Ok(None);
        }
        extraction.observe(&probe, answer);
    }
}
