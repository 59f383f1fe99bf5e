//! Gives the library access to the machine's files and environment variables.

use headstack::FileSource;
use pyo3::prelude::*;
use std::fs::{self, File};
use std::io::{self, Read};
use std::path::Path;

/// Opens files of the operating system.
pub(crate) struct MachineFiles;

impl FileSource for MachineFiles {
    fn open(&self, path: &Path) -> io::Result<Box<dyn Read>> {
        #[allow(clippy::disallowed_methods, reason = "the extension meets the operating system")]
        let file = File::open(path)?;
        Ok(Box::new(file))
    }

    fn length(&self, path: &Path) -> Option<u64> {
        fs::metadata(path).ok().map(|data| data.len())
    }

    fn variable(&self, name: &str) -> Option<String> {
        let value = match name {
            "$pagesize" => sysconf("SC_PAGE_SIZE")?,
            "$ncpus" => sysconf("SC_NPROCESSORS_ONLN")?,
            "$mb_memory" => (sysconf("SC_PAGE_SIZE")? * sysconf("SC_PHYS_PAGES")?) >> 20,
            #[allow(clippy::disallowed_methods, reason = "the extension meets the operating system")]
            name => return std::env::var(name).ok(),
        };
        Some(value.to_string())
    }
}

/// A configuration value of the system, from Python's `os.sysconf`.
fn sysconf(name: &str) -> Option<i64> {
    Python::attach(|py| py.import("os").ok()?.call_method1("sysconf", (name,)).ok()?.extract().ok())
}
