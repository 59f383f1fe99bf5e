//! Runs an extraction on a disk: a simulated, an emulated or a real one.

use crate::{Answer, DiskInfo, Extraction, Probe, Progress};

/// A disk that answers probes.
pub trait ProbeTarget {
    /// A failure other than a failed read or write of the disk.
    type Error;

    /// Its known properties.
    fn info(&self) -> DiskInfo;

    /// Sends a probe. At most [`DiskInfo::depth`] are in flight.
    ///
    /// *Errors:* the probe cannot be sent.
    fn submit(&mut self, probe: Probe) -> Result<(), Self::Error>;

    /// Waits for the next answer.
    ///
    /// *Errors:* no answer can arrive.
    fn wait(&mut self) -> Result<(Probe, Answer), Self::Error>;
}

/// Runs an extraction to its end. `watch` gets each answer and the progress, and ends the extraction by returning `false`.
///
/// *Errors:* those of the disk. Returns `None` if `watch` ended it.
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
