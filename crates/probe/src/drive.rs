//! Turns an extraction with a disk that answers: a simulated one, an emulated one, a real one.

use crate::{Answer, DiskInfo, Extraction, Probe, Progress};

/// A disk that answers probes.
pub trait ProbeTarget {
    /// What may go wrong that is not the disk's own failure.
    type Error;

    /// What is known of it before.
    fn info(&self) -> DiskInfo;

    /// Asks a probe; no more than [`DiskInfo::depth`] are under way.
    ///
    /// *Errors:* what keeps it from being asked.
    fn submit(&mut self, probe: Probe) -> Result<(), Self::Error>;

    /// Waits for the next answer.
    ///
    /// *Errors:* what keeps it from being answered.
    fn wait(&mut self) -> Result<(Probe, Answer), Self::Error>;
}

/// Runs an extraction to its end; `watch` is shown each answer and how far the extraction is, and ends it with `false`.
///
/// *Errors:* the disk's. Ends with nothing where `watch` ended it.
pub fn run<T, D: ProbeTarget>(
    extraction: &mut Extraction<T>,
    disk: &mut D,
    mut watch: impl FnMut(&Probe, &Answer, &Progress) -> bool,
) -> Result<Option<T>, D::Error> {
    let depth = disk.info().depth;
    let mut in_flight = 0;
    loop {
        while in_flight < depth
            && let Some(probe) = extraction.next_probe()
        {
            disk.submit(probe)?;
            in_flight += 1;
        }
        if in_flight == 0 {
            return Ok(extraction.take_found());
        }
        let (probe, answer) = disk.wait()?;
        in_flight -= 1;
        if !watch(&probe, &answer, &extraction.progress()) {
            return Ok(None);
        }
        extraction.observe(&probe, answer);
    }
}
