//! The costs of the host's work, from the keys of the processor, the interface, the page cache and the clients.

use super::spec::HostSpec;
use crate::link::{CommandCost, InterfaceCost, Links, Processor, ProcessorWork, WorkKind};
use headstack_model::Nanos;

/// The work of the host for a request of its load, before it is served and after.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct CallCost {
    program_ns_per_byte: f64,
    client_ns_per_byte: f64,
    client: Nanos,
    system_call: Nanos,
    /// Time from a client to the host, or back.
    pub(crate) way: Nanos,
}

impl CallCost {
    fn bytes_ns(bytes: u64, ns_per_byte: f64) -> Nanos {
        Nanos((bytes as f64 * ns_per_byte).round() as u64)
    }

    /// The work before a request of which `sent` bytes come from its issuer, and `all` bytes are read or written.
    pub(super) fn before(&self, sent: u64, all: u64) -> ProcessorWork {
        ProcessorWork::new(WorkKind::Program, CallCost::bytes_ns(all, self.program_ns_per_byte))
            .and(WorkKind::Client, self.client + CallCost::bytes_ns(sent, self.client_ns_per_byte))
            .and(WorkKind::SystemCall, self.system_call)
    }

    /// The work to return `bytes` bytes to the request's issuer.
    pub(super) fn after(&self, bytes: u64) -> ProcessorWork {
        ProcessorWork::new(WorkKind::Client, CallCost::bytes_ns(bytes, self.client_ns_per_byte))
    }
}

impl HostSpec {
    /// The costs of commands: from a key of the processor, else from the older key of the interface, else the default of an interface.
    fn command_cost(&self) -> CommandCost {
        let given = self.processor.clone().unwrap_or_default();
        let older = self.interface.as_ref();
        let us = |given: Option<f64>, older: Option<f64>, assumed: f64| {
            let assumed = if self.interface.is_some() { assumed } else { 0.0 };
            Nanos::from_us(given.or(older).unwrap_or(assumed))
        };
        CommandCost {
            submit: us(given.submit_us, older.and_then(|one| one.command_us), 10.0),
            interrupt: us(given.interrupt_us, older.and_then(|one| one.interrupt_us), 5.0),
        }
    }

    fn interrupt_us(&self) -> f64 {
        self.command_cost().interrupt.as_us()
    }

    /// Time of a word of two bytes, read or written, in addition to the cycle of a transfer mode.
    fn words_us(&self) -> [f64; 2] {
        let given = self.processor.clone().unwrap_or_default();
        let older = self.interface.as_ref().and_then(|interface| interface.word_us);
        [given.word_read_us, given.word_write_us].map(|us| us.or(older).unwrap_or(0.0))
    }

    /// Time in which the page cache copies `bytes` bytes.
    pub(crate) fn copy_time(&self, bytes: u64) -> Nanos {
        let given = self.processor.as_ref().and_then(|processor| processor.copy_us_per_kib);
        let older = self.page_cache.as_ref().map_or(0.0, |cache| cache.copy_us_per_page / 4.0);
        Nanos::from_us(given.unwrap_or(older) * bytes as f64 / 1024.0)
    }

    /// The host's processor; `None` if nothing costs it any time.
    pub(crate) fn processor(&self) -> Option<Processor> {
        let lanes = self.processor.as_ref().map_or(1, |processor| processor.lanes);
        let works = self.processor.is_some() || self.interface.is_some();
        works.then(|| Processor::new(lanes, self.command_cost()))
    }

    /// Adds the host's processor to what devices share, if anything costs it time.
    pub(crate) fn add_processor(&self, links: &mut Links) {
        if let Some(processor) = self.processor() {
            links.set_processor(processor, self.interface_cost());
        }
    }

    /// The costs of the load's requests; `None` if there are none.
    pub(crate) fn call_cost(&self) -> Option<CallCost> {
        let given = self.processor.clone().unwrap_or_default();
        let cost = CallCost {
            program_ns_per_byte: given.program_us_per_byte * 1e3,
            client_ns_per_byte: given.client_us_per_kib * 1e3 / 1024.0,
            client: Nanos::from_us(given.client_request_us),
            system_call: Nanos::from_us(given.system_call_us),
            way: self.clients.as_ref().map_or(Nanos::ZERO, |one| Nanos::from_us(one.round_trip_us / 2.0)),
        };
        (cost != CallCost::default()).then_some(cost)
    }

    /// Shortest times of a sector that is read, and of one that is written.
    pub(crate) fn us_per_sector(&self, sector_bytes: u32) -> [f64; 2] {
        let Some(interface) = &self.interface else { return [0.0; 2] };
        let sector = f64::from(sector_bytes);
        let interrupts = if interface.kind.is_programmed() {
            self.interrupt_us() * sector / f64::from(interface.block_bytes)
        } else {
            0.0
        };
        self.words_us().map(|word_us| interface.kb_ns(word_us) * sector / 1024.0 / 1e3 + interrupts)
    }

    /// What transfers cost the processor; `None` without an interface.
    fn interface_cost(&self) -> Option<InterfaceCost> {
        let interface = self.interface.as_ref()?;
        let piece = (Nanos::from_us(interface.piece_us), u64::from(interface.piece_bytes));
        let [read_kb, write_kb] =
            self.words_us().map(|word_us| Nanos(interface.kb_ns(word_us).round() as u64));
        Some(InterfaceCost {
            piece: (!interface.kind.is_programmed()).then_some(piece),
            read_kb,
            write_kb,
            block_bytes: u64::from(interface.block_bytes),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_read_and_written_have_times_of_their_own() {
        let text = "interface.kind = \"pio-4\"\nprocessor = { word_read_us = 0.5, word_write_us = 0.2, interrupt_us = 5.0 }";
        let host: HostSpec = toml::from_str(text).expect("the keys are known");
        host.check().expect("the keys are good");
        let [read, write] = host.us_per_sector(512);
        // 256 words of 120 ns and of their own time, and one interrupt.
        assert!((read - (256.0 * 0.62 + 5.0)).abs() < 1e-9, "{read}");
        assert!((write - (256.0 * 0.32 + 5.0)).abs() < 1e-9, "{write}");
    }

    #[test]
    fn older_names_mean_the_same() {
        let cost = |text: &str| {
            let host: HostSpec = toml::from_str(text).expect("the keys are known");
            host.check().expect("the keys are good");
            (host.us_per_sector(512), host.interface_cost(), format!("{:?}", host.processor()))
        };
        let newer = "interface.kind = \"pio-0\"\nprocessor = { submit_us = 3.0, interrupt_us = 2.0, word_read_us = 0.1, word_write_us = 0.1 }";
        let older = "interface = { kind = \"pio-0\", command_us = 3.0, interrupt_us = 2.0, word_us = 0.1 }";
        assert_eq!(cost(newer), cost(older));
    }
}
