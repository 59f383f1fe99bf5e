//! Transfers of a device's data, commands and status to and from the host, over a bus of its own or shared links.

use super::Device;
use crate::link::{Links, Transfer};
use headstack_model::Nanos;

/// The links that a device shares with others, and its number there.
#[derive(Debug)]
pub(super) struct Lent {
    links: Box<Links>,
    number: u32,
}

impl Device {
    /// Lends it the links on which it is the device of this number: for what it does until [`Device::give_back`].
    pub(crate) fn lend(&mut self, links: Box<Links>, number: u32) {
        (self.bus.lent, self.bus.is_shared) = (Some(Lent { links, number }), true);
    }

    /// The links that were lent, if any.
    pub(crate) fn give_back(&mut self) -> Option<Box<Links>> {
        self.bus.lent.take().map(|lent| lent.links)
    }

    /// It has won the bus that it asked for.
    pub(crate) fn handle_bus(&mut self, now: Nanos) {
        self.handle_timeout(now);
        self.port.waits = false;
        if self.is_dead() {
            return self.release_bus();
        }
        self.run_port();
    }

    /// Whether the port may be used: the bus is the drive's own, or has been won. If not, it is asked for.
    pub(super) fn has_bus(&mut self) -> bool {
        self.port.waits = match &mut self.bus.lent {
            None => false,
            Some(Lent { links, number }) => !links.has_bus(self.now, *number),
        };
        !self.port.waits
    }

    /// Gives the bus up, unless it is the drive's own.
    pub(super) fn release_bus(&mut self) {
        if let Some(Lent { links, number }) = &mut self.bus.lent {
            links.release_bus(self.now, *number);
        }
    }

    /// Whether the bus has to be won.
    pub(super) fn is_exclusive(&self) -> bool {
        self.bus.lent.as_ref().is_some_and(|lent| lent.links.is_exclusive(lent.number))
    }

    /// When a command for `sectors` sectors that is sent at `now` has arrived.
    pub(super) fn command_comes(&mut self, now: Nanos, sectors: u32) -> Nanos {
        let bytes = u64::from(sectors) * u64::from(self.size.sector_bytes);
        match &mut self.bus.lent {
            None => now,
            Some(Lent { links, number }) => links.command(now, *number, bytes),
        }
    }

    /// Whether a read's data are sent to the host as they arrive, whatever the port does.
    pub(super) fn streams(&self) -> bool {
        self.bus.lent.as_ref().is_some_and(|lent| lent.links.streams(lent.number))
    }

    /// When the host is notified of a command that ends at `at`.
    pub(super) fn interrupt_at(&mut self, at: Nanos) -> Nanos {
        match &mut self.bus.lent {
            None => at,
            Some(lent) => lent.links.interrupt(self.now, at),
        }
    }

    /// When a status without data has arrived at the host.
    pub(super) fn status_received_at(&mut self, at: Nanos) -> Nanos {
        match &mut self.bus.lent {
            None => at,
            Some(Lent { links, number }) => links.report(at, *number),
        }
    }

    /// When a read's data that begin to cross at `begins` have crossed: no earlier than `bound`.
    pub(super) fn cross_to_host(&mut self, begins: Nanos, sectors: u64, bound: Nanos) -> Nanos {
        let end = (begins + self.bus_time(self.config.read_sector, sectors)).max(bound);
        self.cross(begins, end, sectors, true)
    }

    /// When data that cross a bus of their own from `begins` to `end` have crossed the shared links.
    fn cross(&mut self, begins: Nanos, end: Nanos, sectors: u64, to_host: bool) -> Nanos {
        let bytes = sectors * u64::from(self.size.sector_bytes);
        match &mut self.bus.lent {
            None => end,
            Some(Lent { links, number }) => {
                links.transfer(self.now, *number, Transfer { begins, least: end - begins, bytes, to_host })
            }
        }
    }

    /// Starts receiving a write's data at `begins`; returns when all have arrived.
    pub(super) fn receive_data(&mut self, slot: u32, begins: Nanos) -> Nanos {
        let sectors = u64::from(self.commands.jobs[slot as usize].command.request.sectors);
        let alone = begins + self.bus_time(self.config.write_sector, sectors);
        let sent = self.cross(begins, alone, sectors, false);
        let late = sent > alone;
        let bus_sector =
            if late { ((sent - begins).0 << 10).div_ceil(sectors) } else { self.config.write_sector };
        let arriving = &mut self.job(slot).arriving;
        (arriving.begins, arriving.bus_sector) = (begins, bus_sector);
        sent
    }

    pub(super) fn bus_time(&self, sector: u64, sectors: u64) -> Nanos {
        Nanos((sectors * sector) >> 10)
    }
}
