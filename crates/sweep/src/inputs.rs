//! The content of a load: all files and variables that it reads.

use crate::error::SweepError;
use crate::objects::LoadPlace;
use blake3::{Hash, Hasher};
use headstack::{Error, FileSource, Rig, Simulation, TraceOptions};
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

/// Files of a program that are read in several threads.
pub(crate) type SharedFiles<'a> = &'a (dyn FileSource + Sync);

/// Records the files and variables that a load reads.
struct Recording<'a> {
    files: SharedFiles<'a>,
    opened: RefCell<Vec<PathBuf>>,
    variables: RefCell<BTreeMap<String, String>>,
}

impl FileSource for Recording<'_> {
    fn open(&self, path: &Path) -> io::Result<Box<dyn Read>> {
        let mut opened = self.opened.borrow_mut();
        if !opened.iter().any(|known| known == path) {
            opened.push(path.to_path_buf());
        }
        self.files.open(path)
    }

    fn length(&self, path: &Path) -> Option<u64> {
        self.files.length(path)
    }

    fn variable(&self, name: &str) -> Option<String> {
        let value = self.files.variable(name)?;
        self.variables.borrow_mut().insert(name.to_string(), value.clone());
        Some(value)
    }
}

/// Hashes the contents of loads. A file is read once.
pub(crate) struct LoadHasher<'a> {
    files: SharedFiles<'a>,
    known: BTreeMap<PathBuf, Hash>,
}

impl<'a> LoadHasher<'a> {
    pub(crate) fn new(files: SharedFiles<'a>) -> LoadHasher<'a> {
        LoadHasher { files, known: BTreeMap::new() }
    }

    /// The hash of all that a load reads on `rig`. The load is built once, because a job may name a log that is opened
    /// only then.
    ///
    /// *Errors:* a file cannot be read, or the load is invalid on every rig.
    pub(crate) fn hash(
        &mut self,
        load: &LoadPlace,
        rig: &Rig,
        options: &TraceOptions,
    ) -> Result<Hash, SweepError> {
        let recording =
            Recording { files: self.files, opened: RefCell::default(), variables: RefCell::default() };
        let workload = load.workload(options, &recording)?;
        // A load that does not fit on the rig is the failure of its cells.
        if let Err(error @ Error::Read { .. }) = Simulation::new(rig, workload, 0) {
            return Err(error.into());
        }
        let mut hasher = Hasher::new();
        if let LoadPlace::Object(load) = load {
            add(&mut hasher, &load.content());
        }
        for path in recording.opened.borrow().iter() {
            hasher.update(self.content(path)?.as_bytes());
        }
        for (name, value) in recording.variables.borrow().iter() {
            add(&mut hasher, name.as_bytes());
            add(&mut hasher, value.as_bytes());
        }
        Ok(hasher.finalize())
    }

    fn content(&mut self, path: &Path) -> Result<Hash, SweepError> {
        if let Some(found) = self.known.get(path) {
            return Ok(*found);
        }
        let fault = |error: io::Error| SweepError::folder(path, &error);
        let mut hasher = Hasher::new();
        let mut file = self.files.open(path).map_err(fault)?;
        io::copy(&mut file, &mut hasher).map_err(fault)?;
        let found = hasher.finalize();
        self.known.insert(path.to_path_buf(), found);
        Ok(found)
    }
}

/// Adds a field, preceded by its length, to the hash, so that the boundary between two fields matters.
pub(crate) fn add(hasher: &mut Hasher, field: &[u8]) {
    hasher.update(&(field.len() as u64).to_le_bytes());
    hasher.update(field);
}
