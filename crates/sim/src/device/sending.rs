//! Transfers of a read's data to the host. A read-ahead that waits for room overwrites none of them in the buffer.

use super::Device;
use super::port::{Sending, Wanted};
use super::split::Part;
use headstack_model::{Lbn, Nanos};

impl Device {
    /// Records that `sectors` blocks from `first` on will cross the bus from `begins` on, the last no earlier than `bound`. The
    /// rest of a read whose first part is crossing the bus follows that part.
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
        let sectors = u64::from(self.commands.jobs[slot as usize].command.request.sectors);
        let sent = self.cross_to_host(begins, sectors, Nanos::ZERO);
        let job = self.job(slot);
        job.account(Part::Overhead, begins);
        job.account(Part::Bus, sent);
        let first = job.command.request.lbn;
        self.port.sending = Sending { first, begins, ends: sent };
        self.end(slot, sent + self.config.read_completion);
    }

    /// Occupies the port until the end of a read, the last of whose data cross from `begins` to `sent`.
    pub(super) fn end_read(&mut self, slot: u32, sectors: u64, begins: Nanos, sent: Nanos) {
        let job = self.job(slot);
        job.account(Part::Bus, sent);
        let first = Lbn(job.command.request.end().0 - sectors);
        self.port.sending = Sending { first, begins, ends: sent };
        self.end(slot, sent + self.config.read_completion);
    }

    /// Sends `sectors` blocks from `first` on, the last of a read that the arm starts, to the host as they come from the media:
    /// from `ready` on, the last no earlier than `bound`.
    #[inline]
    pub(super) fn send_from_media(
        &mut self,
        slot: u32,
        first: Lbn,
        sectors: u64,
        ready: Nanos,
        bound: Nanos,
    ) {
        let wanted = Wanted::ToHost { sectors, bound, crossing: false };
        if !self.sees_all_of_port() {
            self.expect_sending(first, sectors, ready, bound);
            return self.want_port(ready, slot, wanted);
        }
        // No other command can need the port before the read ends, so its end is known now and no further event is needed.
        let busy = if self.port.busy { self.port.until } else { self.now };
        let at = self.earliest_bus_request(ready, wanted).max(busy).max(self.now);
        let begins = at + self.config.reconnect_first + self.config.data_preparation;
        let sent = self.cross_to_host(begins, sectors, bound);
        self.end_read(slot, sectors, begins, sent);
    }

    /// Whether a command that the drive has is alone with the port until it is done.
    fn sees_all_of_port(&self) -> bool {
        let stops = self.config.never_disconnects || self.config.holds_for_reads;
        let dies = self.health.dies_at != Nanos::MAX;
        self.commands.depth == 1 && !self.bus.is_shared && !stops && !dies && !self.rule.waits_for_room
    }

    /// When to request the port: where others share the bus, or no other command could use the port meanwhile, not before data
    /// from the media can cross it without a pause.
    pub(super) fn earliest_bus_request(&self, at: Nanos, wanted: Wanted) -> Nanos {
        let stops = self.config.never_disconnects || self.config.holds_for_reads;
        match wanted {
            Wanted::ToHost { sectors, bound, .. }
                if !stops && (self.commands.depth == 1 && !self.bus.is_shared || self.is_exclusive()) =>
            {
                let time = self.bus_time(self.config.read_sector, sectors);
                at.max(bound.since(self.config.reconnect_first + self.config.data_preparation + time))
            }
            _ => at,
        }
    }
}
