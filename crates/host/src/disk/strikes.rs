//! An emulator's part of the faults that a test sets ([`super::rules`]).

use super::emulator::Emulator;
use super::rules::{self, FaultRules, Verdict};
use crate::{BlockError, Operation};
use headstack_model::Geometry;
use std::ops::Range;

impl Emulator {
    /// The faults that a test has set.
    pub fn rules(&mut self) -> &mut FaultRules {
        &mut self.rules
    }

    /// The places of a volume's blocks, if it is one drive.
    pub fn geometry(&self, volume: u32) -> Option<&Geometry> {
        let engine = self.engine().filter(|engine| engine.devices() == self.volumes.len())?;
        Some(&engine.device(volume as usize).drive().geometry)
    }

    pub(super) fn strike(&mut self, volume: u32, operation: &Operation) -> Verdict {
        if self.rules.all().is_empty() {
            return Verdict::default();
        }
        let block = u64::from(self.volumes[volume as usize].info().sector_bytes);
        let mut rules = std::mem::take(&mut self.rules);
        let verdict = rules.strike(volume, operation, block, self.geometry(volume));
        self.rules = rules;
        verdict
    }

    /// Changes the data of a write, or what is on the media below a read.
    pub(super) fn corrupt(
        &mut self,
        volume: u32,
        operation: &mut Operation,
        blocks: &Range<u64>,
    ) -> Result<(), BlockError> {
        let place = &mut self.volumes[volume as usize];
        let block = u64::from(place.info().sector_bytes);
        match operation {
            Operation::Write { offset, data, .. } => rules::corrupt(data, *offset / block, block, blocks),
            Operation::Read { .. } => {
                let end = blocks.end.min(place.info().sectors);
                place.corrupt_media(blocks.start * block, end.saturating_sub(blocks.start), block)?;
            }
            _ => {}
        }
        Ok(())
    }
}
