//! The parameters of all elevators.

use super::{AnticipatorySpec, BfqSpec, CfqSpec, DeadlineSpec, InsertionSpec, KyberSpec};

/// Parameters of the elevators, by elevator.
#[derive(Clone, Debug, Default, PartialEq)]
#[allow(missing_docs, reason = "the names of the fields say it")]
pub struct Tuning {
    pub deadline: DeadlineSpec,
    pub anticipatory: AnticipatorySpec,
    pub cfq: CfqSpec,
    pub bfq: BfqSpec,
    pub kyber: KyberSpec,
    pub insertion: InsertionSpec,
    /// The first block of the range of each arm of the disk; none for a disk with one arm.
    pub arm_firsts: Vec<u64>,
}
