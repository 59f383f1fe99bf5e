//! `[node_queue]`: the queue of a storage node in front of each drive, which `headstack serve --order` makes.

use super::attach;
use super::checks::Checked;
use super::node_queue_spec::NodeQueueSpec;
use super::spec::RigSpec;
use crate::layer::Submission;
use headstack_model::spec::Fault;
use headstack_streams::position::{DriveModel, PositionQueue};

/// Checks the keys, and that each volume is a drive.
pub(super) fn check(rig: &RigSpec) -> Checked {
    let Some(spec) = &rig.node_queue else { return Ok(()) };
    if let Some(array) = rig.array.first() {
        let message = format!("is for volumes of one drive; `{}` is an array", array.name);
        return Err(Fault::new("node_queue", message));
    }
    spec.position_order().map(drop)
}

/// The queue in front of a drive.
pub(super) fn queue(
    rig: &RigSpec,
    spec: &NodeQueueSpec,
    drive: u32,
) -> Result<PositionQueue<Submission>, Fault> {
    let group = rig.drives().nth(drive as usize).expect("the volume has a drive").group;
    let model = DriveModel::new(&attach::attached(rig, group));
    let model = model.map_err(|error| Fault::new(format!("drive[{group}]"), error.to_string()))?;
    Ok(PositionQueue::new(model, spec.position_order()?))
}
