//! Loads of small files in directories: a web server's pages, a tree of sources.

use super::BLOCK_BYTES;
use super::program::{Call, Handle};
use headstack_workload::generator;
use rand::RngExt;

/// Directories that hold small files, the same number in each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SmallFiles {
    /// Directories.
    pub directories: u32,
    /// Files of each.
    pub files_each: u32,
    /// Bytes of the smallest file.
    pub least_bytes: u64,
    /// Bytes of the largest one; sizes between are equally likely.
    pub most_bytes: u64,
    /// Seed.
    pub seed: u64,
}

/// A file that is there before a load: its handle, bytes and directory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SmallFile {
    /// Its handle.
    pub handle: Handle,
    /// Its bytes.
    pub bytes: u64,
    /// Its directory.
    pub directory: u32,
}

impl SmallFiles {
    /// All files, directory by directory.
    pub fn files(&self) -> Vec<SmallFile> {
        let mut random = generator(self.seed);
        let handles = 0..self.directories * self.files_each;
        let file = |handle: Handle| SmallFile {
            handle,
            bytes: random.random_range(self.least_bytes..=self.most_bytes),
            directory: handle / self.files_each,
        };
        handles.map(file).collect()
    }

    /// Opens and reads all files, directory by directory.
    pub fn read_all(&self) -> impl Iterator<Item = Call> + use<> {
        self.files().into_iter().flat_map(read)
    }

    /// Opens and reads all files of a directory, `pages` times, each time of one drawn at random.
    pub fn pages(&self, pages: u32, seed: u64) -> impl Iterator<Item = Call> + use<> {
        let files = self.files();
        let (directories, each) = (self.directories, self.files_each as usize);
        let mut random = generator(seed);
        let page = move |_| {
            let first = random.random_range(0..directories) as usize * each;
            files[first..first + each].iter().copied().flat_map(read).collect::<Vec<Call>>()
        };
        (0..pages).flat_map(page)
    }

    /// Makes and writes all files, directory by directory.
    pub fn create_all(&self) -> impl Iterator<Item = Call> + use<> {
        self.files().into_iter().flat_map(|SmallFile { handle, bytes, directory }| {
            [Call::CreateIn(handle, directory), Call::Append(handle, bytes), Call::Close(handle)]
        })
    }
}

fn read(file: SmallFile) -> impl Iterator<Item = Call> {
    let blocks = file.bytes.div_ceil(BLOCK_BYTES) as u32;
    let reads = (0..blocks).map(move |block| Call::Read(file.handle, block));
    std::iter::once(Call::Open(file.handle)).chain(reads)
}
