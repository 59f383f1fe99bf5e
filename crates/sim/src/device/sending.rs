//! A read's data on their way to the host. A read-ahead that waits for room overwrites none of them in the buffer.

use super::Device;
use super::split::Part;
use headstack_model::{Lbn, Nanos};

/// A read's data that cross the bus, or will.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Sending {
    pub(super) first: Lbn,
    pub(super) begins: Nanos,
    pub(super) ends: Nanos,
}

impl Device {
    /// Notes that `sectors` blocks from `first` on will cross the bus from `begins` on, the last no earlier than `bound`. The rest of a
    /// read whose first part crosses it until then goes on behind that.
    pub(super) fn expect_sending(&mut self, first: Lbn, sectors: u64, begins: Nanos, bound: Nanos) {
        let ends = (begins + self.bus_time(self.config.read_sector, sectors)).max(bound);
        let sending = &mut self.port.sending;
        if begins == sending.ends && sending.first < first {
            sending.ends = ends;
        } else {
            *sending = Sending { first, begins, ends };
        }
    }

    /// Sends a read that the buffer holds, from `begins` on.
    pub(super) fn send_hit(&mut self, slot: u32, begins: Nanos) {
        let sectors = u64::from(self.jobs[slot as usize].command.request.sectors);
        let sent = self.cross_to_host(begins, sectors, Nanos::ZERO);
        let job = self.job(slot);
        job.account(Part::Overhead, begins);
        job.account(Part::Bus, sent);
        let first = job.command.request.lbn;
        self.port.sending = Sending { first, begins, ends: sent };
        self.end(slot, sent + self.config.read_completion);
    }
}
