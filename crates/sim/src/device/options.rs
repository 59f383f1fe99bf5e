//! Options of a device, and why it could not be built.

use crate::shingled::ShingleLayoutError;
use headstack_model::SpecError;
use headstack_policy::order;

/// Options of a device in addition to its drive file.
#[derive(Clone, Debug, Default)]
pub struct DeviceOptions {
    /// Seed of retries, lost revolutions, recalibrations and random replacement.
    pub seed: u64,
    /// Commands that may be outstanding, in place of the drive file's.
    pub depth: Option<u32>,
    /// Order policy of the queue, in place of the drive file's.
    pub order: Option<String>,
}

/// Why a device could not be built.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum DeviceError {
    /// The drive file is invalid.
    #[error(transparent)]
    Spec(#[from] SpecError),
    /// No such order policy.
    #[error(transparent)]
    Order(#[from] order::OrderError),
    /// Bands and a persistent cache that do not fit together.
    #[error("shingled: {0}")]
    Shingles(#[from] ShingleLayoutError),
    /// Queue depth outside 1 to 1,024.
    #[error("queue depth {0} is outside 1 to 1024")]
    Depth(u32),
    /// More commands than NCQ has tags.
    #[error(
        "queue depth {0} is outside 1 to 32, the tags of NCQ; a drive on SAS (bus.interface = \"sas\") has more"
    )]
    Tags(u32),
}
