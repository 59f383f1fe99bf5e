//! Where each unit of an array lies: which member has it, and at which block.

use super::shape::{Organisation, Rotation, Shape, ShapeError};
use super::units::{Row, Rows, Unit};

#[derive(Clone, Debug)]
pub(super) struct Layout {
    organisation: Organisation,
    rotation: Rotation,
    members: u32,
    width: u32,
    copies: u32,
    /// Number of consecutive rows whose parity lies on the same members.
    parity_rows: u64,
    rows: Rows,
    /// First block of the array on each member, with concatenation, and the end of the last.
    starts: Vec<u64>,
}

/// A run of the array's blocks within one unit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Cut {
    pub(super) row: Row,
    /// Index of the unit in its row.
    pub(super) unit: u32,
    /// Blocks of the unit before the first.
    pub(super) offset: u64,
    /// Blocks up to the end of the unit.
    pub(super) sectors: u64,
}

impl Layout {
    /// *Errors:* units that the members cannot hold; a parity unit that is no multiple of the stripe unit.
    pub(super) fn new(shape: &Shape) -> Result<Layout, ShapeError> {
        let members = shape.members.len() as u32;
        let least = shape.members.iter().min().copied().unwrap_or(0);
        let (width, copies) = match shape.organisation {
            Organisation::Concatenation | Organisation::Striping => (members, 1),
            Organisation::Mirroring => (members / shape.copies, shape.copies),
            Organisation::ChainedDeclustering => (members, 2),
            Organisation::ParityDrive | Organisation::Raid5 => (members - 1, 1),
            Organisation::Raid6 => (members - 2, 1),
        };
        let halves = shape.organisation == Organisation::ChainedDeclustering;
        let rows = Rows::new(&shape.unit, if halves { least / 2 } else { least });
        let mut starts = vec![0];
        if shape.organisation == Organisation::Concatenation {
            starts.extend(shape.members.iter().scan(0, |end, member| {
                *end += member;
                Some(*end)
            }));
        } else if rows.sectors() == 0 {
            let message = format!("no drive of {least} sectors holds one of them");
            return Err(ShapeError::new("stripe_unit_sectors", message));
        }
        let parity_rows = parity_rows(shape)?;
        let (organisation, rotation) = (shape.organisation, shape.rotation);
        Ok(Layout { organisation, rotation, members, width, copies, parity_rows, rows, starts })
    }

    pub(super) fn sectors(&self) -> u64 {
        match self.organisation {
            Organisation::Concatenation => self.starts[self.members as usize],
            _ => u64::from(self.width) * self.rows.sectors(),
        }
    }

    pub(super) fn concatenated_starts(&self) -> Option<&[u64]> {
        (self.organisation == Organisation::Concatenation).then(|| &self.starts[..self.members as usize])
    }

    pub(super) fn used(&self) -> u64 {
        match self.organisation {
            Organisation::ChainedDeclustering => 2 * self.rows.sectors(),
            _ => self.rows.sectors(),
        }
    }

    pub(super) fn width(&self) -> u32 {
        self.width
    }

    pub(super) fn parities(&self) -> u32 {
        match self.organisation {
            Organisation::ParityDrive | Organisation::Raid5 => 1,
            Organisation::Raid6 => 2,
            _ => 0,
        }
    }

    pub(super) fn copies(&self) -> u32 {
        self.copies
    }

    pub(super) fn row_at(&self, block: u64) -> Row {
        self.rows.row_at(block % self.rows.sectors())
    }

    /// Blocks of a member from this one to the end of its unit.
    pub(super) fn rest_of_row(&self, block: u64) -> u64 {
        let block = block % self.rows.sectors();
        let row = self.rows.row_at(block);
        row.start + row.sectors - block
    }

    /// The rest of the unit that a block of the array lies in. With concatenation a member is a unit and a row.
    pub(super) fn cut(&self, block: u64) -> Cut {
        if self.organisation == Organisation::Concatenation {
            let unit = self.starts.partition_point(|start| *start <= block) - 1;
            let (offset, sectors) = (block - self.starts[unit], self.starts[unit + 1] - block);
            let row = Row { number: 0, start: 0, sectors: offset + sectors };
            return Cut { row, unit: unit as u32, offset, sectors };
        }
        let width = u64::from(self.width);
        let row = self.rows.row_at(block / width);
        let within = block - width * row.start;
        let (unit, offset) = (within / row.sectors, within % row.sectors);
        Cut { row, unit: unit as u32, offset, sectors: row.sectors - offset }
    }

    /// The member that has a copy of a unit of data, and the block of it at which the unit begins.
    pub(super) fn data(&self, row: &Row, unit: u32, copy: u32) -> (u32, u64) {
        let members = self.members;
        let member = match self.organisation {
            Organisation::Concatenation | Organisation::Striping | Organisation::ParityDrive => unit,
            Organisation::Mirroring => unit + copy * self.width,
            Organisation::ChainedDeclustering => (unit + copy) % members,
            Organisation::Raid5 | Organisation::Raid6 => {
                let (parity, parities) = (self.parity(row, 0), self.parities());
                match self.rotation {
                    Rotation::LeftSymmetric | Rotation::RightSymmetric => {
                        (parity + parities + unit) % members
                    }
                    // The parities are neighbours, but that the second may lie on the first member.
                    _ if parity + parities > members => unit + 1,
                    _ if unit >= parity => unit + parities,
                    _ => unit,
                }
            }
        };
        let inner = self.organisation == Organisation::ChainedDeclustering && copy == 1;
        (member, row.start + if inner { self.rows.sectors() } else { 0 })
    }

    /// The member that has a row's first or second parity.
    pub(super) fn parity(&self, row: &Row, which: u32) -> u32 {
        let members = self.members;
        if self.organisation == Organisation::ParityDrive {
            return members - 1;
        }
        let turn = ((row.number / self.parity_rows) % u64::from(members)) as u32;
        let first = match self.rotation {
            Rotation::LeftSymmetric | Rotation::LeftAsymmetric => members - 1 - turn,
            Rotation::RightSymmetric | Rotation::RightAsymmetric => turn,
        };
        (first + which) % members
    }

    /// The block of the array at a block of a member, as any of its copies; `None` for parity or an unused block.
    pub(super) fn block_at(&self, member: u32, block: u64) -> Option<u64> {
        if self.organisation == Organisation::Concatenation {
            let (start, end) = (self.starts[member as usize], self.starts[member as usize + 1]);
            return Some(start + block).filter(|block| *block < end);
        }
        if block >= self.used() {
            return None;
        }
        let row = self.row_at(block);
        let places = (0..self.width).flat_map(|unit| (0..self.copies).map(move |copy| (unit, copy)));
        let mut here = places.filter_map(|(unit, copy)| {
            let (holder, start) = self.data(&row, unit, copy);
            let offset =
                block.checked_sub(start).filter(|offset| holder == member && *offset < row.sectors)?;
            Some(u64::from(self.width) * row.start + u64::from(unit) * row.sectors + offset)
        });
        here.next()
    }
}

/// Number of consecutive rows whose parity lies on the same members.
fn parity_rows(shape: &Shape) -> Result<u64, ShapeError> {
    let Some(parity) = shape.parity_unit_sectors else { return Ok(1) };
    match shape.unit {
        Unit::Sectors(unit) if parity > 0 && parity.is_multiple_of(unit) => Ok(parity / unit),
        Unit::Sectors(unit) => {
            let message = format!("{parity} is no multiple of the stripe unit of {unit} sectors");
            Err(ShapeError::new("parity_unit_sectors", message))
        }
        Unit::Member | Unit::Lengths(_) => {
            let message = "is for stripe units that are all of one length".to_string();
            Err(ShapeError::new("parity_unit_sectors", message))
        }
    }
}
