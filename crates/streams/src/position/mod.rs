//! Order by position in front of a real disk: a probed drive file says where blocks lie, and the disk's own answers say where the
//! head is.
//!
//! [`PositionQueue`] keeps a window of commands at the disk and chooses the next by any order of [`headstack_policy::order`], with the same code
//! that orders a simulated host's queue. In the simulator the host's map is exact. Here a [`PositionEstimator`] predicts positions:
//! it has the layout and the arm from a [`DriveModel`], and follows the spindle by the ends of reads. It also measures its own
//! error. Until the ends of reads agree with the drive file, and whenever they cease to (another disk, the map of another disk), the
//! queue orders by block number.
//!
//! Modelled: one spindle whose speed differs a little from the drive file and drifts, answers that are late, reads that a cache
//! answers, an arm that misses sectors which it should just reach. Not modelled: what the drive's own queue does within the window,
//! and where the arm is while the drive writes its cache to the media.
//!
//! *Source:* ours. Order by position at the host: H. Y. Yeom, "New (old) problems in HDDs: how to cope with them?" (slides).

mod drive_model;
mod estimator;
mod queue;
mod reserve;
mod spindle_phase;

pub use drive_model::{DriveModel, Prediction};
pub use estimator::{MapState, Observation, PositionEstimator};
pub use queue::{OrderView, PositionOrder, PositionOrderError, PositionQueue};
