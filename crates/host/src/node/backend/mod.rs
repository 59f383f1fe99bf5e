//! The disks of a node.

mod emulated;
mod memory;
mod place;
mod plain;
mod uring;

use super::handle::Core;
use super::messages::{Ended, Shape};
use super::rearrange::NodeRearranger;
use super::stack::{NodeLayer, NodeOut};
use super::tracks::Tracks;
use crate::sysfs::DeviceLocation;
use crate::{BlockError, DiskHandle};
use emulated::Emulated;
use headstack_policy::slowness::WorstAccess;
use headstack_streams::position::{DriveModel, PositionOrder, PositionQueue};
use headstack_streams::rearrange::RearrangeSpec;
use headstack_streams::rearrange_table::{PAGE_BYTES, RecoveredTable, RegionLabel, TableError};
use headstack_streams::streams::{Command, DiskLayer};
use headstack_tracks::TrackMap;
use memory::Memory;
use place::Place;
pub(crate) use place::allocation;
use plain::Plain;
use std::fmt;
use std::fs::File;
use std::io;
use std::os::fd::BorrowedFd;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use uring::Uring;

pub(crate) type Ends = Vec<(Command, Result<Ended, BlockError>)>;

/// Carries out a disk's commands. One thread owns it.
pub(crate) trait Drive: Send {
    fn shape(&self) -> Shape;

    /// A description in one line.
    fn title(&self) -> String;

    /// Reads whole pages before the first command, and waits for them.
    ///
    /// *Errors:* the disk cannot read them.
    fn read_at_start(&self, offset: u64, into: &mut [u8]) -> io::Result<()>;

    /// Called first, in the thread that owns it from then on.
    fn begin(&mut self, _core: &mut Core) {}

    fn wake(&self) -> Option<BorrowedFd<'_>>;

    fn woken(&mut self) {}

    fn start(&mut self, core: &mut Core, command: Command);

    fn issue(&mut self, core: &mut Core);

    /// Adds the commands that have ended. The bytes of reads are in the core's buffers by then.
    fn take_ended(&mut self, core: &mut Core, ends: &mut Ends);

    /// Reads the bytes that a command left on the disk ([`Ended::Left`]).
    fn fetch(&self, offset: u64, into: &mut [u8]);
}

/// How a block device or a file is opened as a disk.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Opening {
    /// Whether to reject writes.
    pub read_only: bool,
    /// Whether transfers use the system's page cache.
    pub buffered: bool,
    /// Whether to use threads with blocking calls instead of io_uring.
    pub threads: bool,
}

/// Opens a block device or a file for exclusive use through the system's page cache, and returns its size.
///
/// *Errors:* as [`Backend::open`]; it must be written and is read-only.
pub(crate) fn open_file(path: &Path, read_only: bool) -> io::Result<(File, u64)> {
    let opening = Opening { read_only, buffered: true, threads: true };
    let Place { file, shape, title, .. } = Place::open(path, opening, &mut Vec::new())?;
    if shape.read_only && !read_only {
        let message = format!("{title}: it is read-only");
        return Err(io::Error::new(io::ErrorKind::PermissionDenied, message));
    }
    Ok((file, shape.bytes))
}

/// A disk for a [`Node`](super::Node).
pub struct Backend {
    pub(super) drive: Box<dyn Drive>,
    pub(super) tracks: Option<Tracks>,
    /// The layers in front of it, from the scheduler down.
    pub(super) layers: Vec<NodeLayer>,
    /// Its bytes as clients see it, where a rearranger hides some.
    pub(super) visible_bytes: Option<u64>,
    pub(super) worst_access: WorstAccess,
    /// The first byte of the range of each of the disk's arms.
    pub(super) arm_firsts: Vec<u64>,
    /// Bytes of a zone, of a disk that refuses writes out of sequence.
    pub(super) zone_bytes: Option<u64>,
    /// Whether the system passes command duration limits to the disk.
    pub(super) has_duration_limits: bool,
    notes: Vec<String>,
}

impl fmt::Debug for Backend {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.debug_tuple("Backend").field(&self.drive.title()).finish()
    }
}

impl Backend {
    pub(super) fn new(drive: Box<dyn Drive>, notes: Vec<String>) -> Backend {
        Backend {
            drive,
            tracks: None,
            layers: Vec::new(),
            visible_bytes: None,
            worst_access: WorstAccess::default(),
            arm_firsts: vec![0],
            zone_bytes: None,
            has_duration_limits: false,
            notes,
        }
    }

    /// The same disk with its worst access, beyond which a command counts as late.
    pub fn with_worst_access(self, worst_access: WorstAccess) -> Backend {
        Backend { worst_access, ..self }
    }

    /// The same disk with known track boundaries: requests of streams end there. `sector_bytes` is the block size of the map.
    ///
    /// *Errors:* the map is of a disk of another size.
    pub fn with_tracks(mut self, map: TrackMap, sector_bytes: u32) -> io::Result<Backend> {
        let Shape { bytes, block_bytes, .. } = self.drive.shape();
        let mapped = map.end().0.saturating_mul(sector_bytes.into());
        if mapped != bytes {
            let message = format!("the track map is of a disk of {mapped} bytes, and this one has {bytes}");
            return Err(io::Error::new(io::ErrorKind::InvalidInput, message));
        }
        self.tracks = Some(Tracks::new(map, sector_bytes, block_bytes));
        Ok(self)
    }

    /// The same disk with a queue of the node's own, ordered by what the drive file `model` says. If that is of a disk of another
    /// size, the queue is ordered by block number, and the notes say so.
    pub fn with_order(self, model: DriveModel, order: PositionOrder) -> Backend {
        let (bytes, of_file) = (self.drive.shape().bytes, model.bytes());
        if of_file != bytes {
            let why = format!("the drive file is of a disk of {of_file} bytes, and this one has {bytes}");
            return self.with_order_by_block(order, &why);
        }
        self.with_layer(PositionQueue::new(model, order))
    }

    /// The same disk with a queue of the node's own, ordered by block number instead of `wanted`; the notes say why.
    pub fn with_order_by_block(mut self, wanted: PositionOrder, why: &str) -> Backend {
        let Shape { bytes, block_bytes, .. } = self.drive.shape();
        self.notes.push(format!("{why}: ordered by block number; probe the disk if it is another one"));
        self.with_layer(PositionQueue::by_block(bytes, block_bytes, wanted))
    }

    /// The same disk behind a layer, which is below those that it has. The layer must not end a request whose command is at the disk.
    fn with_layer(mut self, layer: impl DiskLayer<NodeOut>) -> Backend {
        self.layers.push(Box::new(layer));
        self
    }

    /// The reserved region that the disk has, if it has one.
    ///
    /// *Errors:* its labels are damaged, or of another disk; the disk cannot be read.
    pub fn region(&self) -> Result<Option<RegionLabel>, TableError> {
        RecoveredTable::find(self.shape().bytes, &mut |offset, into| self.drive.read_at_start(offset, into))
    }

    /// The same disk with its hot blocks copied to its region. The disk appears smaller by the region.
    ///
    /// *Errors:* it has no region, or is read-only; the table of the region cannot be used; a key is out of range. Nothing is written.
    pub fn with_rearranger(mut self, spec: &RearrangeSpec) -> io::Result<Backend> {
        let wrong = |message: String| io::Error::new(io::ErrorKind::InvalidInput, message);
        if self.shape().read_only {
            let message = "it is read-only, and its hot block table must be written: open it for writing";
            return Err(wrong(message.to_string()));
        }
        if !(PAGE_BYTES as u32).is_multiple_of(self.shape().block_bytes) {
            let message =
                format!("its blocks of {} bytes do not divide {PAGE_BYTES} bytes", self.shape().block_bytes);
            return Err(wrong(message));
        }
        let label = self.region().map_err(|error| wrong(error.to_string()))?;
        let Some(label) = label else {
            let message = "it has no reserved region: make one with `headstack rearrange format`";
            return Err(wrong(message.to_string()));
        };
        let read = |offset, into: &mut [u8]| self.drive.read_at_start(offset, into);
        let table = RecoveredTable::read(label, &mut { read }).map_err(|error| wrong(error.to_string()))?;
        let rearranger = NodeRearranger::new(spec, &table).map_err(|error| wrong(error.to_string()))?;
        if !rearranger.is_at_end() && self.tracks.take().is_some() {
            let note = "the reserved region is not at the end of the disk, so `map` is ignored: requests of streams are not split at track boundaries";
            self.notes.push(note.to_string());
        }
        self.visible_bytes = Some(rearranger.visible_bytes());
        // The other layers have the whole disk.
        self.layers.insert(0, Box::new(rearranger));
        Ok(self)
    }

    /// Refuses a disk with a reserved region if no rearranger uses it: what was written to copies would be missing.
    ///
    /// *Errors:* it has one, or it cannot be read.
    pub fn refuse_unused_region(&self) -> io::Result<()> {
        let wrong = |message: String| io::Error::new(io::ErrorKind::InvalidInput, message);
        if self.visible_bytes.is_some() {
            return Ok(());
        }
        match self.region() {
            Ok(None) => Ok(()),
            Err(error) => Err(wrong(error.to_string())),
            Ok(Some(label)) => Err(wrong(format!(
                "it has a region of {} copies, without which old data would be read: add [disk.rearrange] to the node file, or remove the \
                 region with `headstack rearrange dissolve`",
                label.slots
            ))),
        }
    }

    /// A disk in memory that is zero and takes no memory until written; it measures the cost of a node.
    ///
    /// *Errors:* the size is no multiple of 512 bytes.
    pub fn memory(bytes: u64) -> io::Result<Backend> {
        if bytes == 0 || !bytes.is_multiple_of(u64::from(Memory::BLOCK)) {
            let message = format!("a disk of {bytes} bytes: it must be a multiple of {}", Memory::BLOCK);
            return Err(io::Error::new(io::ErrorKind::InvalidInput, message));
        }
        Ok(Backend::new(Box::new(Memory::new(bytes)), Vec::new()))
    }

    /// A volume of an emulated disk of this process.
    ///
    /// *Errors:* the system refuses an event counter.
    pub fn emulated(disk: DiskHandle, volume: u32) -> io::Result<Backend> {
        Ok(Backend::new(Box::new(Emulated::new(disk, volume)?), Vec::new()))
    }

    /// A block device or a file, for exclusive use: not mounted, and not another program's disk.
    ///
    /// *Errors:* the path is nothing that can be a disk; it is in use ([`io::ErrorKind::ResourceBusy`]; the system may release it
    /// some moments after a program has ended); the system refuses it. Each names the path.
    pub fn open(path: &Path, opening: Opening) -> io::Result<Backend> {
        let mut notes = Vec::new();
        let place = Place::open(path, opening, &mut notes)?;
        let device = place.file.metadata()?.rdev();
        let location = DeviceLocation::find(device).ok();
        let arm_firsts = location.as_ref().map_or(vec![0], DeviceLocation::arm_firsts);
        let zone_bytes = location.as_ref().and_then(DeviceLocation::zone_bytes);
        // Threads send all commands alike.
        let may_limit = location.is_some_and(|found| found.has_duration_limits());
        let ring = if opening.threads { Err((place, None)) } else { Backend::ring(place) };
        let has_duration_limits = may_limit && ring.is_ok();
        let drive: Box<dyn Drive> = match ring {
            Ok(ring) => Box::new(ring),
            Err((place, refused)) => {
                let note =
                    |error| format!("{}: io_uring is refused ({error}): threads are used", place.title);
                notes.extend(refused.map(note));
                Box::new(Plain::new(place)?)
            }
        };
        Ok(Backend { arm_firsts, zone_bytes, has_duration_limits, ..Backend::new(drive, notes) })
    }

    fn ring(place: Place) -> Result<Uring, (Place, Option<io::Error>)> {
        Uring::new(place).map_err(|(place, error)| (place, Some(error)))
    }

    /// What differs from the request, a line each.
    pub fn notes(&self) -> &[String] {
        &self.notes
    }

    /// The disk.
    pub fn shape(&self) -> Shape {
        self.drive.shape()
    }

    /// A description in one line.
    pub fn title(&self) -> String {
        self.drive.title()
    }
}
