//! The contents and the clients of a file server.

use super::allocate::{Ext2Error, Ext2Volume};
use headstack_model::Nanos;
use headstack_workload::dist::{Distribution, DistributionError, Popularity};
use rand::RngExt;
use rand_pcg::Pcg64Mcg;
use thiserror::Error;

/// The contents and the clients of a file server.
#[derive(Clone, Debug, PartialEq)]
pub struct FileServerShape {
    /// Number of files.
    pub files: u32,
    /// Number of directories; each file is in a randomly drawn one.
    pub directories: u32,
    /// Bytes of a file.
    pub file_bytes: Distribution<f64>,
    /// How accesses are distributed over files, whatever their size.
    pub popularity: Popularity,
    /// Share of accesses that rewrite the file, 0 to 1.
    pub write_share: f64,
    /// Blocks of a transfer.
    pub transfer_blocks: u32,
    /// Blocks of the server's cache.
    pub cached_blocks: usize,
    /// Whether all directories, inodes and blocks of pointers are in memory, and take no room in the cache.
    pub holds_metadata: bool,
    /// Clients.
    pub clients: u32,
    /// Time of an access before its first request: the client, the network and the server's processor.
    pub host_time: Nanos,
    /// Blocks in the middle that no file gets, except hot ones if `moves_files`.
    pub reserved_blocks: u32,
    /// Whether hot files are moved at the end of a period.
    pub moves_files: bool,
    /// Length of a period.
    pub period: Nanos,
    /// Periods after which no access begins.
    pub periods: u32,
}

/// Why a server cannot be made.
#[derive(Clone, Debug, PartialEq, Error)]
#[allow(missing_docs, reason = "the messages say it")]
pub enum FileServerError {
    #[error("file server: {0}")]
    Volume(#[from] Ext2Error),
    #[error("file server: {0}")]
    Distribution(#[from] DistributionError),
    #[error("file server: {0} is 0 (1 or more)")]
    Zero(&'static str),
    #[error("file server: the share of writes is {0} (0 to 1)")]
    WriteShare(f64),
}

pub(super) fn check(shape: &FileServerShape) -> Result<(), FileServerError> {
    let counts = [
        ("the number of files", u64::from(shape.files)),
        ("the number of directories", u64::from(shape.directories)),
        ("the number of clients", u64::from(shape.clients)),
        ("the blocks of a transfer", u64::from(shape.transfer_blocks)),
        ("the time of an access without the disk", shape.host_time.0),
        ("the period", shape.period.0),
    ];
    if let Some((name, _)) = counts.into_iter().find(|(_, count)| *count == 0) {
        return Err(FileServerError::Zero(name));
    }
    if (0.0..=1.0).contains(&shape.write_share) {
        Ok(())
    } else {
        Err(FileServerError::WriteShare(shape.write_share))
    }
}

/// Creates the directories and files.
pub(super) fn populate(
    mut volume: Ext2Volume,
    shape: &FileServerShape,
    random: &mut Pcg64Mcg,
) -> Result<Ext2Volume, FileServerError> {
    if shape.reserved_blocks > 0 {
        volume.reserve_hot_area(shape.reserved_blocks)?;
    }
    let sizes = shape.file_bytes.sampler()?;
    (1..=shape.directories).try_for_each(|directory| volume.make_directory(directory))?;
    for file in 0..shape.files {
        volume.create(file, random.random_range(1..=shape.directories))?;
        volume.write_to(file, (sizes.draw(random) as u64).max(1))?;
        volume.close(file);
    }
    volume.take_touched();
    Ok(volume)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_out_of_their_range_are_rejected() {
        let shape = FileServerShape {
            files: 1,
            directories: 1,
            file_bytes: Distribution::Constant(1.0),
            popularity: Popularity::Even,
            write_share: 1.0,
            transfer_blocks: 1,
            cached_blocks: 0,
            holds_metadata: false,
            clients: 1,
            host_time: Nanos::from_ms(1.0),
            reserved_blocks: 0,
            moves_files: false,
            period: Nanos::from_secs(1),
            periods: 1,
        };
        assert_eq!(check(&shape), Ok(()));
        let no_client = FileServerShape { clients: 0, ..shape.clone() };
        assert_eq!(check(&no_client), Err(FileServerError::Zero("the number of clients")));
        let writes = FileServerShape { write_share: 1.5, ..shape };
        assert_eq!(check(&writes), Err(FileServerError::WriteShare(1.5)));
    }
}
