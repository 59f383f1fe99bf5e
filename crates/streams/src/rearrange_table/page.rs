//! Pages: a checksum seals each, so that a page of which only a part reached the disk is noticed.

use super::PAGE_BYTES;

/// Slots whose entries are in one page of the table.
pub(super) const SLOTS_PER_PAGE: usize = 500;

/// Where the checksum of a page is: in its last four bytes.
const CHECKSUM: usize = PAGE_BYTES - 4;

const MAGIC: &[u8; 8] = b"\x89HSHB\r\n\x1a";

/// First byte of the entries.
const ENTRIES: usize = 64;

/// The bit of an entry that says that the copy equals its home. It counts in a closed page only.
const IS_CLEAN: u64 = 1 << 63;

pub(super) fn put(page: &mut [u8], first: usize, bytes: &[u8]) {
    page[first..first + bytes.len()].copy_from_slice(bytes);
}

pub(super) fn u32_at(page: &[u8], first: usize) -> u32 {
    u32::from_le_bytes(page[first..first + 4].try_into().expect("a number has four bytes"))
}

pub(super) fn u64_at(page: &[u8], first: usize) -> u64 {
    u64::from_le_bytes(page[first..first + 8].try_into().expect("a number has eight bytes"))
}

/// The page with its checksum.
pub(super) fn sealed(mut page: Vec<u8>) -> Vec<u8> {
    let checksum = crc32fast::hash(&page[..CHECKSUM]);
    put(&mut page, CHECKSUM, &checksum.to_le_bytes());
    page
}

/// Whether a page's checksum is right.
pub(super) fn is_whole(page: &[u8]) -> bool {
    crc32fast::hash(&page[..CHECKSUM]) == u32_at(page, CHECKSUM)
}

/// What the table says of a slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct TableEntry {
    /// The block whose copy the slot holds; `None` if it is free.
    pub(super) block: Option<u64>,
    /// Whether the copy equals its home.
    pub(super) is_clean: bool,
}

impl TableEntry {
    pub(super) const FREE: TableEntry = TableEntry { block: None, is_clean: false };

    fn encode(self) -> u64 {
        let clean = if self.is_clean { IS_CLEAN } else { 0 };
        self.block.map_or(0, |block| (block + 1) | clean)
    }

    fn decode(entry: u64) -> TableEntry {
        match entry & !IS_CLEAN {
            0 => TableEntry::FREE,
            block => TableEntry { block: Some(block - 1), is_clean: entry & IS_CLEAN != 0 },
        }
    }
}

/// The head of a page of the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct PageHead {
    /// Its number.
    pub(super) page: u32,
    /// Rises with every write of the page.
    pub(super) sequence: u64,
    /// Whether no copy was used since it was written, so that [`TableEntry::is_clean`] counts.
    pub(super) is_closed: bool,
}

/// Why a page of the table cannot be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PageFault {
    /// It is no page of a table, or damaged.
    Damaged,
    /// It belongs to another region.
    Foreign,
}

/// A page of the table of the region `id`. Entries beyond the last slot are zero.
pub(super) fn encode(id: &[u8; 16], head: PageHead, entries: &[TableEntry]) -> Vec<u8> {
    let mut page = vec![0; PAGE_BYTES];
    put(&mut page, 0, MAGIC);
    put(&mut page, 8, id);
    put(&mut page, 24, &head.page.to_le_bytes());
    put(&mut page, 28, &u32::from(head.is_closed).to_le_bytes());
    put(&mut page, 32, &head.sequence.to_le_bytes());
    for (number, entry) in entries.iter().enumerate() {
        put(&mut page, ENTRIES + 8 * number, &entry.encode().to_le_bytes());
    }
    sealed(page)
}

/// The head and the entries of a page.
///
/// *Errors:* it is damaged, or of another region.
pub(super) fn decode(
    id: &[u8; 16],
    number: u32,
    page: &[u8],
) -> Result<(PageHead, Vec<TableEntry>), PageFault> {
    if page[..8] != MAGIC[..] || !is_whole(page) {
        return Err(PageFault::Damaged);
    }
    if page[8..24] != id[..] {
        return Err(PageFault::Foreign);
    }
    let head =
        PageHead { page: u32_at(page, 24), sequence: u64_at(page, 32), is_closed: u32_at(page, 28) == 1 };
    if head.page != number {
        return Err(PageFault::Damaged);
    }
    let entries = page[ENTRIES..ENTRIES + 8 * SLOTS_PER_PAGE].chunks_exact(8);
    Ok((head, entries.map(|entry| TableEntry::decode(u64_at(entry, 0))).collect()))
}
