//! A request of a job.

use headstack_model::Request;

#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct FioRequest {
    pub(super) volume: u32,
    pub(super) request: Request,
    pub(super) urgent: bool,
    /// Whether it is of the idle class.
    pub(super) idle: bool,
    /// The number of its duration limit; 0 for none.
    pub(super) limit: u8,
    /// Whether the zone of a write is reset before it.
    pub(super) resets_zone: bool,
    /// Whether more may follow before a completion.
    pub(super) more: bool,
    /// Whether the clone needs its id.
    pub(super) tracked: bool,
}

impl FioRequest {
    /// Its length; 0 for a flush. The unit does not matter to those who compare.
    pub(super) fn bytes(&self) -> u64 {
        u64::from(self.request.sectors) * 512
    }

    /// A flush, for whose end the job waits.
    pub(super) fn flush(volume: u32) -> FioRequest {
        FioRequest {
            volume,
            request: Request::flush(),
            urgent: false,
            idle: false,
            limit: 0,
            resets_zone: false,
            more: false,
            tracked: false,
        }
    }
}
