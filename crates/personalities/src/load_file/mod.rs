//! The load file: loads of generators, as one TOML document.
//!
//! A field of [`LoadSpec`] is a key of the file. Sizes are in bytes and volumes have names, so that one file serves many
//! rigs; the tables `process` alone count sectors, as the files they are imported from do.

mod area;
mod benchmark_build;
mod benchmarks;
mod build;
mod spec;
mod table;

pub use area::Area;
pub use benchmarks::{BonnieSpec, Ext2Spec, HdparmSpec, IozoneSpec, ProgramCostsSpec};
pub use spec::{BlocksSpec, BurstSpec, Direction, LoadSpec, Order, StreamSpec};

use headstack_model::SpecError;

use headstack_workload::Load;
use headstack_workload::VolumeInfo;

/// A load file that was read and checked.
#[derive(Clone, Debug, PartialEq)]
pub struct LoadFile {
    spec: LoadSpec,
    origin: String,
    /// The file's text, in which faults are located.
    text: String,
}

impl LoadFile {
    /// Reads and checks a load file. `origin` (the file's name) goes into errors.
    ///
    /// *Errors:* the first fault found, with its line, its key and what is allowed.
    pub fn parse(text: &str, origin: &str) -> Result<LoadFile, SpecError> {
        let spec: LoadSpec = toml::from_str(text).map_err(|e| SpecError::from_toml(&e, text, origin))?;
        spec.check().map_err(|fault| fault.locate(text, origin))?;
        Ok(LoadFile { spec, origin: origin.to_string(), text: text.to_string() })
    }

    /// A load file from keys that did not come from a file. `origin` goes into errors.
    ///
    /// *Errors:* as [`LoadFile::parse`].
    pub fn from_spec(spec: &LoadSpec, origin: &str) -> Result<LoadFile, SpecError> {
        LoadFile::parse(&spec.to_toml(), origin)
    }

    /// The keys.
    pub fn spec(&self) -> &LoadSpec {
        &self.spec
    }

    /// The load, over the volumes of a rig.
    ///
    /// *Errors:* a volume does not exist, or a request does not fit in the used part of it; with line and key.
    pub fn build(&self, volumes: &[VolumeInfo], seed: u64) -> Result<Box<dyn Load>, SpecError> {
        let mix = build::build(&self.spec, volumes, seed);
        mix.map(|mix| Box::new(mix) as Box<dyn Load>).map_err(|fault| fault.locate(&self.text, &self.origin))
    }
}
