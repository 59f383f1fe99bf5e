//! The keys of a node's queue.

use headstack_model::spec::Fault;
use headstack_streams::position::PositionOrder;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The queue of a storage node in front of each drive: `headstack serve --order` in virtual time. Like the node, it has the drive file,
/// finds the angle of the spindle from the ends of reads, and orders by block number until it has.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct NodeQueueSpec {
    /// `cylinder` (`c-look-cylinder`), `position` (`sptf`), or the name of any order that needs to know no more than the position.
    pub order: String,
    /// Commands at the drive, at most.
    #[serde(default = "one")]
    #[schemars(range(min = 1, max = PositionOrder::MOST_WINDOW), extend("x-unit" = "commands"))]
    pub window: u32,
}

fn one() -> u32 {
    1
}

impl NodeQueueSpec {
    /// The order and the window.
    ///
    /// *Errors:* no such order.
    pub(super) fn position_order(&self) -> Result<PositionOrder, Fault> {
        let order = PositionOrder::new(&self.order, self.window);
        order.map_err(|error| Fault::new("node_queue.order", error.to_string()))
    }
}
