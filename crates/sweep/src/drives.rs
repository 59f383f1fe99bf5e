//! Fixed parts of drives, built once for all cells of a sweep.

use headstack_model::{DriveSpec, SpecError};
use headstack_sim::{Drive, DriveShape, DriveSource, NewDrives};
#[allow(clippy::disallowed_types, reason = "the cells of a sweep run in several threads")]
use std::sync::Mutex;
use std::sync::{Arc, PoisonError};

/// Maximum number of drives that are kept. A sweep over the geometry itself has as many as cells.
const KEPT: usize = 64;

/// Shares the fixed parts of drives between runs in several threads.
#[derive(Debug, Default)]
#[allow(clippy::disallowed_types, reason = "the cells of a sweep run in several threads")]
pub struct SharedDrives {
    kept: Mutex<Vec<(DriveShape, Arc<Drive>)>>,
}

impl DriveSource for SharedDrives {
    fn drive(&self, spec: &DriveSpec) -> Result<Arc<Drive>, SpecError> {
        let shape = DriveShape::from(spec);
        // The list is valid after a panic: a drive is added in one step.
        let kept = || self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        let find = |list: &[(DriveShape, Arc<Drive>)]| {
            list.iter().find(|(known, _)| *known == shape).map(|(_, drive)| Arc::clone(drive))
        };
        if let Some(found) = find(&kept()) {
            return Ok(found);
        }
        // Built without the lock: two threads may build the same drive once each, but none waits for another.
        let drive = NewDrives.drive(spec)?;
        let mut list = kept();
        if let Some(found) = find(&list) {
            return Ok(found);
        }
        if list.len() == KEPT {
            list.remove(0);
        }
        list.push((shape, Arc::clone(&drive)));
        Ok(drive)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use headstack_model::drives;

    #[test]
    fn drives_share_their_geometry_whatever_their_queue() {
        let shared = SharedDrives::default();
        let spec = drives::load("atlas-10k").expect("the drive ships");
        let mut deeper = spec.clone();
        deeper.queue.depth = 7;
        let mut slower = spec.clone();
        slower.mechanics.rpm -= 1.0;
        let drive = |spec: &DriveSpec| shared.drive(spec).expect("the drive is valid");
        assert!(Arc::ptr_eq(&drive(&spec), &drive(&deeper)));
        assert!(!Arc::ptr_eq(&drive(&spec), &drive(&slower)));
    }
}
