//! A file server over an ext2: clients read and rewrite whole files by their popularity.
//!
//! An access reads the directory up to the file's name, the inode, and then the data in transfers of a few blocks with the pointers that
//! lead to them, each from the server's cache if it is there. Some accesses rewrite the file in place; the server writes data and inode
//! before it answers. A client has one access at a time. At the end of each period the server can move hot files
//! ([`Ext2Volume::move_hot_files`]): it lets the accesses end that have begun, moves the files, and serves the next ones.
//!
//! Not modelled: new and deleted files, the server's processor and network, and the memory that holds data between read and write of a
//! move.
//!
//! *Source:* assumption; transfers of 8 KiB and writes before the answer are those of NFS 2.

use super::allocate::Ext2Volume;
use super::file::PointerBlock;
use super::hot_files::FileTemperatures;
use super::server_cache::ServerCache;
use super::server_shape::{FileServerError, FileServerShape, check, populate};
use headstack_model::{Instant, Lbn, Nanos, Op, Request};
use headstack_workload::dist::Ranks;
use headstack_workload::generator;
use headstack_workload::{Issue, Load, Poll};
use rand::RngExt;
use rand_pcg::Pcg64Mcg;
use std::collections::{BTreeMap, VecDeque};

/// Blocks of a transfer while files are moved. *Source:* assumption.
const MOVED_BLOCKS: u32 = 16;

/// A move of hot files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RelocationRecord {
    /// Files whose data moved.
    pub files: u32,
    /// Blocks of their data.
    pub blocks: u64,
    /// Time in which the server did nothing else.
    pub time: Nanos,
}

#[derive(Clone, Debug, Default)]
struct ServerClient {
    /// Remaining requests of its access.
    requests: VecDeque<Request>,
    /// When its access reaches the disk.
    ready: Instant,
    is_waiting: bool,
    has_access: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum MoveState {
    None,
    /// Accesses that have begun are served to their end.
    Draining,
    /// Files have been moved since this time.
    Moving(Instant),
}

/// The server's load on one volume. The clients are its sources; the last source moves files.
pub struct FileServer {
    volume: Ext2Volume,
    shape: FileServerShape,
    first: Lbn,
    block_sectors: u32,
    ranks: Ranks,
    /// Files by popularity.
    by_rank: Vec<u32>,
    random: Pcg64Mcg,
    cache: ServerCache,
    temperatures: FileTemperatures,
    /// The clients, and last the process that moves files.
    clients: Vec<ServerClient>,
    move_state: MoveState,
    relocations: Vec<RelocationRecord>,
    /// Accesses that ended in each period.
    ended: Vec<u64>,
    issued: u64,
}

impl FileServer {
    /// A server whose file system begins at block `first` of the device, which has blocks of `sector_bytes` bytes. Files and accesses
    /// are drawn from a seed.
    ///
    /// *Errors:* the files do not fit on the volume, or a number of the shape is out of its range.
    pub fn new(
        volume: Ext2Volume,
        (first, sector_bytes): (Lbn, u32),
        shape: FileServerShape,
        seed: u64,
    ) -> Result<FileServer, FileServerError> {
        check(&shape)?;
        let mut random = generator(seed);
        let volume = populate(volume, &shape, &mut random)?;
        let mut by_rank: Vec<u32> = (0..shape.files).collect();
        for rank in (1..by_rank.len()).rev() {
            by_rank.swap(rank, random.random_range(0..=rank));
        }
        Ok(FileServer {
            block_sectors: volume.geometry().block_bytes / sector_bytes,
            first,
            ranks: shape.popularity.ranks(u64::from(shape.files))?,
            by_rank,
            random,
            cache: ServerCache::new(shape.cached_blocks),
            temperatures: FileTemperatures::default(),
            clients: vec![ServerClient::default(); shape.clients as usize + 1],
            move_state: MoveState::None,
            relocations: Vec::new(),
            ended: vec![0],
            issued: 0,
            volume,
            shape,
        })
    }

    /// Accesses that ended in each period.
    pub fn ended_accesses(&self) -> &[u64] {
        &self.ended
    }

    /// The moves of hot files, one at the end of each period.
    pub fn relocations(&self) -> &[RelocationRecord] {
        &self.relocations
    }

    /// The file system.
    pub fn volume(&self) -> &Ext2Volume {
        &self.volume
    }

    /// The process that moves files.
    fn mover(&self) -> usize {
        self.clients.len() - 1
    }

    fn request(&self, op: Op, block: u32, blocks: u32) -> Request {
        let lbn = self.first + u64::from(block) * u64::from(self.block_sectors);
        Request { op, lbn, sectors: blocks * self.block_sectors, fua: false }
    }

    /// Begins an access: all its requests, in their order.
    fn begin(&mut self) -> VecDeque<Request> {
        let file = self.by_rank[self.ranks.draw(&mut self.random) as usize];
        let rewrites = self.random.random::<f64>() < self.shape.write_share;
        let op = if rewrites { Op::Write } else { Op::Read };
        self.temperatures.observe(file);
        let mut requests = VecDeque::new();
        let inode = self.volume.inode_block_of(file);
        let names = self.volume.lookup_blocks(file).iter().copied();
        for block in names.chain(inode).collect::<Vec<u32>>() {
            self.read_metadata(block, &mut requests);
        }
        let blocks = self.volume.blocks_of(file).to_vec();
        let pointers: BTreeMap<PointerBlock, u32> = self.volume.pointers_of(file).collect();
        let per_block = self.volume.geometry().block_bytes / 4;
        let transfer = self.shape.transfer_blocks as usize;
        for (first, transferred) in (0..).step_by(transfer).zip(blocks.chunks(transfer)) {
            for block in PointerBlock::path(first, per_block).filter_map(|kind| pointers.get(&kind)) {
                self.read_metadata(*block, &mut requests);
            }
            let held: Vec<bool> = transferred.iter().map(|block| self.cache.hold(*block)).collect();
            let needed = transferred.iter().zip(held).filter(|(_, is_held)| rewrites || !is_held);
            for (block, blocks) in runs(needed.map(|(block, _)| *block), u32::MAX) {
                requests.push_back(self.request(op, block, blocks));
            }
        }
        if rewrites {
            inode.into_iter().for_each(|block| requests.push_back(self.request(Op::Write, block, 1)));
        }
        requests
    }

    fn read_metadata(&mut self, block: u32, requests: &mut VecDeque<Request>) {
        if !self.shape.holds_metadata && !self.cache.hold(block) {
            requests.push_back(self.request(Op::Read, block, 1));
        }
    }

    /// Moves the hot files of the period: reads all data that move, writes them, and then the metadata that have changed.
    fn relocate(&mut self, now: Instant) {
        // The files that leave the area have room, because nothing was made in the place of those that came.
        let moved = self.volume.move_hot_files(&self.temperatures).unwrap_or_default();
        self.temperatures.clear();
        self.cache.rename(&moved);
        let sorted = |mut blocks: Vec<u32>| {
            blocks.sort_unstable();
            blocks
        };
        let from = sorted(moved.iter().flat_map(|file| &file.from).copied().collect());
        let to = sorted(moved.iter().flat_map(|file| &file.to).copied().collect());
        let metadata: Vec<u32> = self.volume.take_touched().into_keys().collect();
        let mut requests = VecDeque::new();
        let blocks = from.len() as u64;
        for (op, blocks) in [(Op::Read, from), (Op::Write, to), (Op::Write, metadata)] {
            let runs = runs(blocks.into_iter(), MOVED_BLOCKS);
            requests.extend(runs.into_iter().map(|(block, blocks)| self.request(op, block, blocks)));
        }
        let mover = self.mover();
        self.clients[mover].requests = requests;
        self.relocations.push(RelocationRecord { files: moved.len() as u32, blocks, time: Nanos::ZERO });
        self.move_state = MoveState::Moving(now);
    }

    /// The period that a time lies in, counted from 0.
    fn period_at(&self, now: Instant) -> usize {
        (now.since(Instant::ZERO).0 / self.shape.period.0) as usize
    }

    fn is_move_due(&self, now: Instant) -> bool {
        self.shape.moves_files && self.period_at(now) > self.relocations.len()
    }

    /// Ends a move, or begins one that is due when no access is left.
    fn advance_move(&mut self, now: Instant, is_over: bool) {
        let is_idle = self.clients.iter().all(|client| !client.has_access);
        match self.move_state {
            MoveState::None if !is_over && self.is_move_due(now) => self.move_state = MoveState::Draining,
            MoveState::Draining if is_idle => self.relocate(now),
            MoveState::Moving(since) => {
                let mover = &self.clients[self.mover()];
                if mover.requests.is_empty() && !mover.is_waiting {
                    let last = self.relocations.last_mut().expect("a move has its record from its begin");
                    last.time = now.since(since);
                    self.move_state = MoveState::None;
                }
            }
            MoveState::None | MoveState::Draining => {}
        }
    }

    /// Ends a client's access if it has no request left, and begins its next one.
    fn advance_client(&mut self, now: Instant, number: usize, is_over: bool) {
        let client = &mut self.clients[number];
        if client.is_waiting || client.ready > now || !client.requests.is_empty() {
            return;
        }
        if std::mem::take(&mut client.has_access) {
            let period = self.period_at(now);
            self.ended.resize(self.ended.len().max(period + 1), 0);
            self.ended[period] += 1;
        }
        if !is_over && self.move_state == MoveState::None {
            let (requests, ready) = (self.begin(), now + self.shape.host_time);
            self.clients[number] = ServerClient { requests, ready, is_waiting: false, has_access: true };
        }
    }
}

impl Load for FileServer {
    fn poll(&mut self, now: Instant) -> Poll {
        let is_over = self.period_at(now) >= self.shape.periods as usize;
        self.advance_move(now, is_over);
        (0..self.mover()).for_each(|number| self.advance_client(now, number, is_over));
        // The last access may have ended here.
        self.advance_move(now, is_over);
        let per_round = self.clients.len() as u64;
        for (number, client) in self.clients.iter_mut().enumerate() {
            if client.is_waiting || client.ready > now {
                continue;
            }
            if let Some(request) = client.requests.pop_front() {
                client.is_waiting = true;
                let id = self.issued * per_round + number as u64;
                self.issued += 1;
                return Poll::Issue(Issue { source: number as u32, ..Issue::new(0, request, id) });
            }
        }
        let is_active = |client: &&ServerClient| client.has_access && client.ready > now;
        match self.clients.iter().filter(is_active).map(|client| client.ready).min() {
            Some(ready) => Poll::Later(ready),
            None if self.clients.iter().any(|client| client.is_waiting) => Poll::Waiting,
            None if is_over => Poll::Done,
            // A move that had nothing to do is over at once.
            None => Poll::Later(now),
        }
    }

    fn handle_completion(&mut self, _now: Instant, id: u64) {
        let number = (id % self.clients.len() as u64) as usize;
        self.clients[number].is_waiting = false;
    }

    fn progress(&self, now: Instant) -> Option<f64> {
        let end = self.shape.period.as_secs() * f64::from(self.shape.periods);
        Some((now.as_secs() / end).min(1.0))
    }
}

/// The runs of adjacent blocks, each with its length, which is at most `most`.
fn runs(blocks: impl Iterator<Item = u32>, most: u32) -> Vec<(u32, u32)> {
    let mut runs: Vec<(u32, u32)> = Vec::new();
    for block in blocks {
        match runs.last_mut() {
            Some((first, length)) if *first + *length == block && *length < most => *length += 1,
            _ => runs.push((block, 1)),
        }
    }
    runs
}

#[cfg(test)]
mod tests {
    use super::super::Ext2Shape;
    use super::*;
    use headstack_workload::dist::{Distribution, Popularity};
    use std::collections::BTreeSet;

    fn server(moves_files: bool) -> FileServer {
        let shape = Ext2Shape { block_bytes: 4096, blocks: 9000, bytes_per_inode: 4096, reserved_percent: 5 };
        let geometry = shape.geometry().expect("the shape is valid");
        let volume = Ext2Volume::new(geometry, true).expect("there is room");
        let server = FileServerShape {
            files: 400,
            directories: 8,
            file_bytes: Distribution::exponential(20_000.0),
            popularity: Popularity::Zipf { exponent: 1.0 },
            write_share: 0.2,
            transfer_blocks: 2,
            cached_blocks: 60,
            holds_metadata: false,
            clients: 3,
            host_time: Nanos::from_ms(1.0),
            reserved_blocks: 200,
            moves_files,
            period: Nanos::from_secs(4),
            periods: 3,
        };
        FileServer::new(volume, (Lbn(0), 512), server, 1).expect("the files fit")
    }

    /// Runs on a disk that needs 5 ms for each request, with the requests in the order of their ends.
    fn requests(server: &mut FileServer) -> Vec<(Instant, u32, Request)> {
        let (mut now, mut pending, mut ended) = (Instant::ZERO, VecDeque::new(), Vec::new());
        loop {
            let time = match server.poll(now) {
                Poll::Issue(issue) => {
                    let free = pending.back().map_or(now, |(end, _): &(Instant, Issue)| *end);
                    pending.push_back((free.max(now) + Nanos::from_ms(5.0), issue));
                    continue;
                }
                Poll::Later(time) => time,
                Poll::Waiting => Instant::MAX,
                Poll::Compute { .. } => unreachable!("the server's processor is not modelled"),
                Poll::Done => return ended,
            };
            match pending.front().copied().filter(|(end, _)| *end <= time) {
                Some((end, issue)) => {
                    now = end;
                    pending.pop_front();
                    ended.push((end, issue.source, issue.request));
                    server.handle_completion(now, issue.id);
                }
                None => now = time,
            }
        }
    }

    #[test]
    fn accesses_wait_while_files_are_moved() {
        let mut server = server(true);
        let requests = requests(&mut server);
        let mover = server.mover() as u32;
        let moves: Vec<usize> = requests
            .iter()
            .enumerate()
            .filter(|(_, (_, source, _))| *source == mover)
            .map(|(at, _)| at)
            .collect();
        assert_eq!(server.relocations().len(), 2, "one between two periods");
        assert!(server.relocations()[0].files > 0);
        // The requests of a move follow each other without a client's between them, so there are as many gaps as further moves.
        let gaps = moves.windows(2).filter(|pair| pair[1] != pair[0] + 1).count();
        assert!(gaps <= 1, "{gaps} gaps in two moves");
        let time: Nanos = server.relocations().iter().fold(Nanos::ZERO, |sum, record| sum + record.time);
        assert_eq!(time, Nanos::from_ms(5.0 * moves.len() as f64));
    }

    #[test]
    fn hot_data_are_requested_from_the_area_after_a_move() {
        let mut server = server(true);
        let requests = requests(&mut server);
        let (mover, area) = (server.mover() as u32, server.volume().hot_area());
        let area = u64::from(area.start) * 8..u64::from(area.end) * 8;
        let in_area = |from: u64, to: u64| {
            let period = |end: &Instant| (Instant::from_secs(from)..Instant::from_secs(to)).contains(end);
            let clients: Vec<_> =
                requests.iter().filter(|(end, source, _)| *source != mover && period(end)).collect();
            clients.iter().filter(|(.., request)| area.contains(&request.lbn.0)).count() as f64
                / clients.len() as f64
        };
        assert_eq!(in_area(0, 4), 0.0);
        assert!(in_area(8, 12) > 0.2, "{}", in_area(8, 12));
    }

    #[test]
    fn server_that_holds_metadata_reads_data_alone() {
        let mut server = server(false);
        server.shape = FileServerShape { holds_metadata: true, write_share: 0.0, ..server.shape };
        let data: BTreeSet<u32> =
            (0..400).flat_map(|file| server.volume().blocks_of(file).to_vec()).collect();
        let requests = requests(&mut server);
        assert!(requests.iter().all(|(.., request)| data.contains(&((request.lbn.0 / 8) as u32))));
    }

    #[test]
    fn same_seed_gives_the_same_requests_and_no_moves_unless_wanted() {
        let (mut one, mut other) = (server(false), server(false));
        assert_eq!(requests(&mut one), requests(&mut other));
        assert_eq!(one.relocations(), []);
        assert!(one.ended_accesses().iter().sum::<u64>() > 100, "{:?}", one.ended_accesses());
    }
}
