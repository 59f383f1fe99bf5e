//! Why a sweep does not run, or ends. The failure of a single cell is a row, not an error.

use headstack_model::SpecError;
use std::io;
use std::path::Path;

/// Why a sweep failed. Displays as one line.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
#[allow(missing_docs, reason = "the names say it")]
pub enum SweepError {
    /// The sweep file is invalid: file, line, key, what is allowed.
    #[error(transparent)]
    Definition(#[from] SpecError),
    /// A rig or load cannot be read or is invalid.
    #[error(transparent)]
    Input(#[from] headstack::Error),
    /// Every cell is refused, so that the definition is at fault.
    #[error("{origin}: no rig accepts these settings: {message}")]
    Settings { origin: String, message: String },
    /// A part is not `I/N`.
    #[error("part {0}: must be I/N with I from 1 to N, such as 3/16")]
    Part(String),
    /// A cell's index is past the end of the plan.
    #[error("cell {index}: the plan has {cells} cells, from 0 on")]
    Cell { index: usize, cells: usize },
    /// The folder or a file in it cannot be read or written.
    #[error("{path}: {message}")]
    Folder { path: String, message: String },
}

impl SweepError {
    pub(crate) fn folder(path: &Path, error: &io::Error) -> SweepError {
        SweepError::message(path, &error.to_string())
    }

    pub(crate) fn message(path: &Path, message: &str) -> SweepError {
        SweepError::Folder { path: path.display().to_string(), message: message.to_string() }
    }
}
