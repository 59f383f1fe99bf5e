//! The list of the temporary files of this process. A signal that ends the process runs no destructors, so the handler removes the listed files.

#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "the list of temporary files is the process's"
)]

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

static TEMPORARY: Mutex<Vec<PathBuf>> = Mutex::new(Vec::new());

/// The list is valid after a panic: a path is pushed or removed in one step.
fn temporary() -> MutexGuard<'static, Vec<PathBuf>> {
    TEMPORARY.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Keeps a temporary file on the list that [`remove_all`] removes, until it is dropped.
#[derive(Debug)]
pub(crate) struct Listed(PathBuf);

impl Listed {
    /// Creates a temporary file and lists it. A signal cannot end the process in between.
    pub(crate) fn make<F, E>(
        make: impl FnOnce() -> Result<F, E>,
        path: impl FnOnce(&F) -> &Path,
    ) -> Result<(F, Listed), E> {
        let mut list = temporary();
        let file = make()?;
        let path = path(&file).to_path_buf();
        list.push(path.clone());
        Ok((file, Listed(path)))
    }
}

impl Drop for Listed {
    fn drop(&mut self) {
        temporary().retain(|path| *path != self.0);
    }
}

/// Removes the listed files. No new file is created while the caller, which ends the process, keeps the lock.
pub(crate) fn remove_all() -> MutexGuard<'static, Vec<PathBuf>> {
    let list = temporary();
    for path in list.iter() {
        // A missing file has just been moved to its place; other failures cannot be reported.
        let _ = fs::remove_file(path);
    }
    list
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn temporary_file_is_listed_until_it_is_dropped() {
        let path = Path::new("/nowhere/interrupt-test");
        let made = Listed::make(|| Ok::<_, ()>(path), |path| path);
        let is_listed = || temporary().iter().any(|listed| listed == path);
        assert!(is_listed());
        drop(made);
        assert!(!is_listed());
    }
}
