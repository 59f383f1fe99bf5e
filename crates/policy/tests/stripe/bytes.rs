//! Drives with one byte in each block, on which an array's plans are executed.
//!
//! The parity arithmetic is the textbook's: the first parity is the sum of the data in GF(2⁸), and the second is the sum of the data, each
//! multiplied by a power of 2. The parity that a plan writes must follow from the data that the plan has read.

use headstack_model::{Lbn, Op, Request};
use headstack_policy::stripe::{Access, Array, Members, Organisation, Plan, Shape};
use std::collections::BTreeMap;

/// A product in GF(2⁸) by the polynomial x⁸ + x⁴ + x³ + x² + 1.
pub(crate) fn product(mut one: u8, mut other: u8) -> u8 {
    let mut sum = 0;
    while other > 0 {
        if other & 1 == 1 {
            sum ^= one;
        }
        one = (one << 1) ^ if one & 0x80 > 0 { 0x1d } else { 0 };
        other >>= 1;
    }
    sum
}

fn inverse(value: u8) -> u8 {
    (1..=255).find(|other| product(value, *other) == 1).expect("only zero has none")
}

fn power(unit: usize) -> u8 {
    (0..unit).fold(1, |sum, _| product(sum, 2))
}

/// Members whose queue lengths and arm positions follow from a seed.
pub(crate) struct Somewhere(pub(crate) u64);

impl Members for Somewhere {
    fn outstanding(&self, member: u32) -> usize {
        (self.0 >> (member % 60)) as usize & 3
    }

    fn distance(&self, member: u32, lbn: Lbn) -> u64 {
        lbn.0.abs_diff(self.0 % (100 + u64::from(member)))
    }
}

/// The members and blocks of a column: its data in order, and its parities.
struct Column {
    data: Vec<(u32, u64)>,
    parity: Vec<(u32, u64)>,
}

/// An array with bytes on its members and spares.
pub(crate) struct Bytes {
    pub(crate) array: Array,
    shape: Shape,
    /// The blocks of each member; the spares follow the members.
    pub(crate) blocks: Vec<Vec<u8>>,
    /// The byte that was last written to each block of the array.
    pub(crate) truth: Vec<u8>,
    plan: Plan,
}

impl Bytes {
    pub(crate) fn new(shape: Shape) -> Bytes {
        let whole = Shape { failed: Vec::new(), spares: 0, ..shape.clone() };
        let mut bytes = Bytes {
            array: Array::new(whole.clone()).unwrap_or_else(|error| panic!("{error}")),
            blocks: shape.members.iter().map(|sectors| vec![0; *sectors as usize]).collect(),
            truth: Vec::new(),
            plan: Plan::default(),
            shape: whole,
        };
        bytes.truth = vec![0; bytes.array.sectors() as usize];
        let sectors = bytes.truth.len() as u32;
        bytes.write(0, &(0..sectors).map(|block| (block * 7 + block / 251) as u8).collect::<Vec<u8>>());
        bytes.array = Array::new(shape.clone()).unwrap_or_else(|error| panic!("{error}"));
        bytes.shape = shape;
        // The data of failed members are lost, and spares are empty.
        let gone: Vec<u32> = bytes.shape.failed.clone();
        gone.iter().for_each(|member| bytes.blocks[*member as usize].fill(0xEE));
        bytes
            .blocks
            .extend(gone.iter().map(|member| vec![0xDD; bytes.shape.members[*member as usize] as usize]));
        bytes
    }

    fn has_parity(&self) -> bool {
        matches!(
            self.shape.organisation,
            Organisation::ParityDrive | Organisation::Raid5 | Organisation::Raid6
        )
    }

    /// The column of a block of the array: the blocks that share its parity.
    fn column(&self, block: u64) -> Column {
        let (_, start) = self.array.locate(Lbn(block));
        let parities: Vec<u32> = self.array.parity_of(Lbn(block)).collect();
        let members = 0..self.shape.members.len() as u32;
        let mut data: Vec<(u64, (u32, u64))> = members
            .filter(|member| !parities.contains(member))
            .map(|member| {
                let block = self.array.block_at(member, start).expect("a row is full of data");
                (block.0, (member, start.0))
            })
            .collect();
        data.sort();
        Column {
            data: data.into_iter().map(|(_, place)| place).collect(),
            parity: parities.into_iter().map(|member| (member, start.0)).collect(),
        }
    }

    /// The data of a column, if they follow from the known blocks.
    fn solve(column: &Column, known: &BTreeMap<(u32, u64), u8>) -> Option<Vec<u8>> {
        let old: Vec<Option<u8>> = column.data.iter().map(|place| known.get(place).copied()).collect();
        let unknown: Vec<usize> = (0..old.len()).filter(|unit| old[*unit].is_none()).collect();
        let mut data: Vec<u8> = old.iter().map(|value| value.unwrap_or(0)).collect();
        // A parity without the known data: what the unknown data contribute to it.
        let rest = |which: usize| {
            let parity = *known.get(column.parity.get(which)?)?;
            Some(parity ^ parities(&data)[which])
        };
        match unknown[..] {
            [] => {}
            [one] => match (rest(0), rest(1)) {
                (Some(first), _) => data[one] = first,
                (None, Some(second)) => data[one] = product(second, inverse(power(one))),
                (None, None) => return None,
            },
            [one, two] => {
                let (first, second) = (rest(0)?, rest(1)?);
                // first = a + b, second = 2^one a + 2^two b.
                let sum = second ^ product(power(two), first);
                let a = product(sum, inverse(power(one) ^ power(two)));
                (data[one], data[two]) = (a, first ^ a);
            }
            _ => return None,
        }
        Some(data)
    }

    /// Each block that a phase reads or writes.
    fn each(phase: &[Access], op: Op) -> Vec<(u32, u64)> {
        let of = phase.iter().filter(|access| access.request.op == op);
        of.flat_map(|access| {
            (access.request.lbn.0..access.request.end().0).map(|block| (access.member, block))
        })
        .collect()
    }

    /// The member that a spare replaces; a member itself.
    fn place_of(&self, member: u32) -> u32 {
        match (member as usize).checked_sub(self.shape.members.len()) {
            None => member,
            Some(spare) => self.shape.failed[spare],
        }
    }

    /// Reads the blocks that a plan reads. Returns their values.
    fn known(&self, plan: &Plan) -> BTreeMap<(u32, u64), u8> {
        let first = plan.phases().next().unwrap_or_default();
        let read = Bytes::each(first, Op::Read).into_iter();
        read.map(|(member, block)| {
            assert!(!self.shape.failed.contains(&member), "what has failed is not read");
            ((self.place_of(member), block), self.blocks[member as usize][block as usize])
        })
        .collect()
    }

    /// Writes bytes by the array's plan.
    pub(crate) fn write(&mut self, from: u64, data: &[u8]) {
        let mut plan = std::mem::take(&mut self.plan);
        self.array.plan(&Request::write(Lbn(from), data.len() as u32), &Somewhere(from), &mut plan);
        let known = self.known(&plan);
        let new = |block: u64| data.get(block.checked_sub(from)? as usize).copied();
        let all: Vec<Access> = plan.accesses().copied().collect();
        let writes = Bytes::each(&all, Op::Write);
        for (member, block) in &writes {
            assert!(!self.shape.failed.contains(member), "what has failed is not written");
            let place = self.place_of(*member);
            let value = match self.array.block_at(place, Lbn(*block)) {
                Some(own) => new(own.0).expect("only requested blocks are written as data"),
                None => self.parity(place, *block, &known, &new),
            };
            self.blocks[*member as usize][*block as usize] = value;
        }
        self.truth[from as usize..from as usize + data.len()].copy_from_slice(data);
        self.plan = plan;
    }

    /// The new value of a block of parity, from the known blocks of its column and the new data.
    fn parity(
        &self,
        member: u32,
        block: u64,
        known: &BTreeMap<(u32, u64), u8>,
        new: &dyn Fn(u64) -> Option<u8>,
    ) -> u8 {
        let any = (0..self.shape.members.len() as u32).find_map(|one| self.array.block_at(one, Lbn(block)));
        let column = self.column(any.expect("a row has data").0);
        let which = column.parity.iter().position(|place| place.0 == member).expect("it is the row's parity");
        let own: Vec<u64> = column
            .data
            .iter()
            .map(|(member, block)| self.array.block_at(*member, Lbn(*block)).expect("it is data").0)
            .collect();
        let fresh: Vec<Option<u8>> = own.iter().map(|block| new(*block)).collect();
        // From the old parity and the changes of the data, if the old values are known.
        let old_parity = known.get(&column.parity[which]).copied();
        let changes = column.data.iter().zip(&fresh).enumerate().map(|(unit, (place, fresh))| match fresh {
            None => Some(0),
            Some(fresh) => {
                let weight = if which == 0 { 1 } else { power(unit) };
                Some(product(weight, fresh ^ known.get(place)?))
            }
        });
        if let (Some(old), Some(changes)) = (old_parity, changes.collect::<Option<Vec<u8>>>()) {
            return changes.into_iter().fold(old, |sum, change| sum ^ change);
        }
        // Otherwise from the whole column. The old value of a block that is written is not needed.
        let mut all = known.clone();
        for (place, fresh) in column.data.iter().zip(&fresh) {
            all.entry(*place).or_insert(fresh.unwrap_or(0));
        }
        let complete =
            column.data.iter().zip(&fresh).all(|(place, fresh)| known.contains_key(place) || fresh.is_some());
        let mut data = if complete { Bytes::solve(&column, &all) } else { Bytes::solve(&column, known) }
            .expect("the parity follows from what was read");
        for (value, fresh) in data.iter_mut().zip(&fresh) {
            *value = fresh.unwrap_or(*value);
        }
        parities(&data)[which]
    }

    /// Reads bytes by the array's plan.
    pub(crate) fn read(&mut self, from: u64, sectors: u32, view: u64) -> Vec<u8> {
        let mut plan = std::mem::take(&mut self.plan);
        self.array.plan(&Request::read(Lbn(from), sectors), &Somewhere(view), &mut plan);
        let known = self.known(&plan);
        let value = |block: u64| {
            let member =
                known.keys().find(|(member, at)| self.array.block_at(*member, Lbn(*at)) == Some(Lbn(block)));
            match member {
                Some(place) => known[place],
                None => {
                    assert!(self.has_parity(), "block {block} is not read");
                    let column = self.column(block);
                    let place = self.array.locate(Lbn(block));
                    let unit = column.data.iter().position(|one| *one == (place.0, place.1.0));
                    let data =
                        Bytes::solve(&column, &known).expect("the lost data follow from what was read");
                    data[unit.expect("it is in its column")]
                }
            }
        };
        let read = (from..from + u64::from(sectors)).map(value).collect();
        self.plan = plan;
        read
    }

    /// Executes a step of the rebuild. Returns whether there was one.
    pub(crate) fn rebuild(&mut self, most: u64) -> bool {
        let mut plan = std::mem::take(&mut self.plan);
        let step = self.array.plan_rebuild(most, &mut plan);
        if step.is_some() {
            let known = self.known(&plan);
            let write = plan.accesses().last().expect("the spare is written");
            let (spare, place) = (write.member, self.place_of(write.member));
            for block in write.request.lbn.0..write.request.end().0 {
                self.blocks[spare as usize][block as usize] = self.lost_value(place, block, &known);
            }
            self.array.rebuilt();
        }
        self.plan = plan;
        step.is_some()
    }

    /// The lost value of a member's block, from the known blocks.
    fn lost_value(&self, member: u32, block: u64, known: &BTreeMap<(u32, u64), u8>) -> u8 {
        let own = self.array.block_at(member, Lbn(block));
        if !self.has_parity() {
            let own = own.expect("every block is a copy");
            let copy =
                known.iter().find(|((other, at), _)| self.array.block_at(*other, Lbn(*at)) == Some(own));
            return *copy.expect("a copy was read").1;
        }
        let any = (0..self.shape.members.len() as u32).find_map(|one| self.array.block_at(one, Lbn(block)));
        let column = self.column(any.expect("a row has data").0);
        let data = Bytes::solve(&column, known).expect("the lost unit follows from what was read");
        match column.data.iter().position(|place| place.0 == member) {
            Some(unit) => data[unit],
            None => {
                let which = column.parity.iter().position(|place| place.0 == member);
                parities(&data)[which.expect("a member holds data or parity")]
            }
        }
    }
}

/// Both parities of a column's data.
fn parities(data: &[u8]) -> [u8; 2] {
    let weighed = data.iter().enumerate().map(|(unit, value)| product(power(unit), *value));
    [data.iter().fold(0, |sum, value| sum ^ value), weighed.fold(0, |sum, value| sum ^ value)]
}
