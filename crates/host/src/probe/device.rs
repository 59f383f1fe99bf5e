//! A block device or a file that answers probes: direct I/O calls in threads.

use super::{Opened, Options, Over, ProbeError, Task, TaskResult, physical_sectors, start, user, wait_until};
use crate::Clock;
use crate::node::bytes::pages;
use crate::sysfs::DeviceLocation;
use headstack_model::Instant;
use headstack_probe::{Answer, DiskInfo, Outcome, ProbeCommand};
use headstack_tracks::map::Identity;
use memmap2::MmapMut;
use rustix::fs::{FileType, OFlags, SeekFrom, ioctl_blkpbszget, ioctl_blksszget};
use rustix::io::{Errno, ReadWriteFlags, preadv2, pwritev2};
use std::fs::{File, OpenOptions};
use std::io::{self, IoSlice, IoSliceMut};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
#[allow(clippy::disallowed_types, reason = "threads share what is to be asked")]
use std::sync::Mutex;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, PoisonError};

/// Block size of a file in bytes.
const FILE_BLOCK: u32 = 512;

pub(super) fn open(path: &Path, options: Options) -> Result<Opened, ProbeError> {
    let wrong = |error: io::Error| ProbeError::Device { path: path.to_path_buf(), error };
    let found = rustix::fs::stat(path).map_err(|error| wrong(error.into()))?;
    let is_device = match FileType::from_raw_mode(found.st_mode) {
        FileType::BlockDevice => true,
        FileType::RegularFile => false,
        _ => return Err(wrong(io::Error::other("it is neither a block device nor a file"))),
    };
    let in_use = |by: String| ProbeError::InUse { path: path.to_path_buf(), by };
    if is_device && let Some(by) = user::user_of(found.st_rdev) {
        return Err(in_use(by));
    }
    let exclusive = if is_device { OFlags::EXCL } else { OFlags::empty() };
    let flags = (OFlags::DIRECT | exclusive).bits() as i32;
    let file = OpenOptions::new().read(true).write(options.writes).custom_flags(flags).open(path);
    let file = file.map_err(|error| match error.kind() {
        io::ErrorKind::ResourceBusy => in_use("another program has it".to_string()),
        io::ErrorKind::InvalidInput => wrong(io::Error::other("it takes no direct I/O (O_DIRECT)")),
        _ => wrong(error),
    })?;
    if !is_device && user::has_file(&file) {
        return Err(in_use("another program, a loop device or swap has it open".to_string()));
    }
    let info = info(&file, is_device, options).map_err(|error| match error {
        Wrong::System(error) => wrong(error),
        Wrong::Options(error) => error,
    })?;
    let (name, identity) = names(path, is_device.then_some(found.st_rdev), &info);
    let worker = Worker { file: Arc::new(file), path: path.to_path_buf(), info };
    worker.start(name, identity, options).map_err(wrong)
}

enum Wrong {
    System(io::Error),
    Options(ProbeError),
}

fn info(file: &File, is_device: bool, options: Options) -> Result<DiskInfo, Wrong> {
    let system = |error: Errno| Wrong::System(error.into());
    let bytes = rustix::fs::seek(file, SeekFrom::End(0)).map_err(system)?;
    let (block, physical) = if is_device {
        (ioctl_blksszget(file).map_err(system)?, ioctl_blkpbszget(file).map_err(system)?)
    } else {
        (FILE_BLOCK, FILE_BLOCK)
    };
    let physical = options.physical_bytes.unwrap_or(physical.max(block));
    Ok(DiskInfo {
        sectors: bytes / u64::from(block),
        sector_bytes: block,
        physical_sectors: physical_sectors(physical, block).map_err(Wrong::Options)?,
        depth: options.depth.unwrap_or(1),
        may_write: options.writes,
        translates: false,
    })
}

/// The name to show, and the disk's identity.
fn names(path: &Path, number: Option<u64>, info: &DiskInfo) -> (String, Identity) {
    let found = number.and_then(|number| DeviceLocation::find(number).ok());
    let (name, serial) = found.map(|found| found.own_names()).unwrap_or_default();
    let shown = name.as_ref().map(|name| format!(" ({name})")).unwrap_or_default();
    let identity = Identity { name, serial, ..info.identity() };
    (format!("{}{shown}", path.display()), identity)
}

#[derive(Clone)]
struct Worker {
    file: Arc<File>,
    path: PathBuf,
    info: DiskInfo,
}

impl Worker {
    #[allow(clippy::disallowed_types, reason = "threads share what is to be asked")]
    fn start(self, name: String, identity: Identity, options: Options) -> io::Result<Opened> {
        let (tasks, taken) = channel();
        let (tell_over, over) = channel();
        let (tell, reported) = channel();
        let taken = Arc::new(Mutex::new(taken));
        let clock = Clock::new(1.0).expect("real time is a speed");
        let info = self.info;
        let begin = |_| {
            let (worker, taken, tell_over) = (self.clone(), Arc::clone(&taken), tell_over.clone());
            start("probe", options, tell.clone(), move || worker.run(&clock, &taken, &tell_over))
        };
        let threads = (0..info.depth).map(begin).collect::<io::Result<Vec<_>>>()?;
        let is_real_time = reported.iter().take(info.depth).all(|first| first);
        let (to_media, flushes) = (true, true);
        Ok(Opened { info, name, identity, tasks, over, threads, is_real_time, to_media, flushes, clock })
    }

    #[allow(clippy::disallowed_types, reason = "threads share what is to be asked")]
    fn run(&self, clock: &Clock, taken: &Mutex<Receiver<Task>>, tell: &Sender<TaskResult>) {
        let mut room = pages(1 << 20);
        loop {
            let (task, issued) = {
                // Waits with the lock held, so that commands are taken in order.
                let taken = taken.lock().unwrap_or_else(PoisonError::into_inner);
                let Ok(task) = taken.recv() else { return };
                self.prepare(&task, &mut room);
                wait_until(clock, task.probe.at);
                (task, clock.now())
            };
            let reported = self.answer(clock, task, issued, &mut room);
            if tell.send(reported).is_err() {
                return;
            }
        }
    }

    /// First byte and length of a command.
    fn byte_range(&self, command: &ProbeCommand) -> (u64, usize) {
        let bytes = u64::from(self.info.sector_bytes);
        match command {
            ProbeCommand::Read { lbn, sectors, .. } | ProbeCommand::Write { lbn, sectors, .. } => {
                (lbn.0 * bytes, (u64::from(*sectors) * bytes) as usize)
            }
            _ => (0, 0),
        }
    }

    /// Sizes the buffer for a command, and fills in the data of a write.
    fn prepare(&self, task: &Task, room: &mut MmapMut) {
        let (_, length) = self.byte_range(&task.probe.command);
        if length > room.len() {
            *room = pages(length);
        }
        room[..task.data.len()].copy_from_slice(&task.data);
    }

    fn answer(&self, clock: &Clock, task: Task, issued: Instant, room: &mut MmapMut) -> TaskResult {
        let Task { probe, keeps, .. } = task;
        let (offset, length) = self.byte_range(&probe.command);
        let done = self.carry_out(&probe.command, offset, &mut room[..length]);
        let ended = clock.now();
        let outcome = match done {
            Ok(()) => Outcome::Done,
            Err(Errno::NODEV | Errno::NXIO | Errno::BADF) => {
                let error = io::Error::other("the device has gone");
                return Err(ProbeError::Device { path: self.path.clone(), error });
            }
            Err(_) => Outcome::Failed,
        };
        let data = if keeps { room[..length].to_vec() } else { Vec::new() };
        Ok(Over { probe, answer: Answer { issued, ended, outcome }, data })
    }

    fn carry_out(&self, command: &ProbeCommand, offset: u64, room: &mut [u8]) -> Result<(), Errno> {
        let none = ReadWriteFlags::empty();
        match command {
            ProbeCommand::Read { .. } => self.whole(room.len(), |done| {
                preadv2(&self.file, &mut [IoSliceMut::new(&mut room[done..])], offset + done as u64, none)
            }),
            ProbeCommand::Write { to_media, .. } => {
                let flags = if *to_media { ReadWriteFlags::DSYNC } else { none };
                self.whole(room.len(), |done| {
                    pwritev2(&self.file, &[IoSlice::new(&room[done..])], offset + done as u64, flags)
                })
            }
            _ => rustix::fs::fdatasync(&self.file),
        }
    }

    /// Repeats `step` until all bytes are transferred; beyond the end of a disk there are none.
    fn whole(&self, bytes: usize, mut step: impl FnMut(usize) -> Result<usize, Errno>) -> Result<(), Errno> {
        let mut done = 0;
        while done < bytes {
            match step(done) {
                Ok(0) => return Err(Errno::IO),
                Ok(more) => done += more,
                Err(Errno::INTR) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::super::RealDisk;
    use super::*;
    use headstack_model::{Lbn, Nanos};
    use headstack_probe::{Disk, Extraction, drive};
    use std::os::unix::fs::FileExt;

    /// A file with a pattern, on a file system with direct I/O; none if there is none. It is made next to the test program: temporary
    /// files may be in memory, and another test copies the sources meanwhile.
    fn file() -> Option<tempfile::TempPath> {
        let program = std::env::current_exe().expect("the test program has a path");
        let folder = program.parent().expect("it is in a folder");
        let file = tempfile::NamedTempFile::new_in(folder).expect("there is room");
        file.as_file().write_all_at(&pattern(), 0).expect("there is room");
        // No other handle may be open.
        let file = file.into_temp_path();
        let direct = OpenOptions::new().read(true).custom_flags(OFlags::DIRECT.bits() as i32).open(&file);
        if direct.is_err() {
            headstack_prerequisites::skip("the file system takes no direct I/O");
        }
        direct.ok().map(|_| file)
    }

    fn pattern() -> Vec<u8> {
        (0..1u32 << 18).flat_map(|number| number.to_le_bytes()).collect()
    }

    fn outcomes(path: &Path, options: Options) -> (Vec<Outcome>, Vec<bool>) {
        let mut disk = RealDisk::open(path, options).expect("it can be probed");
        assert_eq!((disk.info.sectors, disk.info.sector_bytes), (2048, 512));
        let mut extraction = Extraction::new(disk.info, async |disk: Disk| {
            let read = |lbn| ProbeCommand::Read { lbn: Lbn(lbn), sectors: 8, from_media: true };
            let write = ProbeCommand::Write { lbn: Lbn(64), sectors: 4, to_media: true };
            let asks = [
                read(0),
                write,
                ProbeCommand::Flush,
                write,
                read(2040),
                read(2048),
                ProbeCommand::Locate(Lbn(0)),
            ];
            let at = |k: usize| disk.now() + Nanos(k as u64 * 1_000_000);
            let sent: Vec<_> =
                asks.into_iter().enumerate().map(|(k, command)| disk.send(command, at(k))).collect();
            let (mut outcomes, mut in_time) = (Vec::new(), Vec::new());
            for (k, ticket) in sent.into_iter().enumerate() {
                let answer = disk.answer(ticket).await;
                in_time.push(answer.issued >= Instant(k as u64 * 1_000_000) && answer.ended >= answer.issued);
                outcomes.push(answer.outcome);
            }
            (outcomes, in_time)
        });
        let found = drive::run(&mut extraction, &mut disk, |_, _, _| true);
        found.expect("it answers").expect("it is not cancelled")
    }

    #[test]
    fn probe_writes_leave_the_contents_unchanged() {
        let Some(file) = file() else { return };
        use Outcome::{Done, Failed, Refused};
        for depth in [1, 4] {
            let options = Options { depth: Some(depth), writes: true, ..Options::default() };
            let (outcomes, in_time) = outcomes(&file, options);
            assert_eq!(outcomes, [Done, Done, Done, Done, Done, Failed, Refused]);
            assert_eq!(in_time, [true; 7]);
            #[allow(clippy::disallowed_methods, reason = "what there is now is what was there before")]
            let content = std::fs::read(&file).expect("it is there");
            assert!(content == pattern(), "its contents changed");
        }
    }

    #[test]
    fn file_open_in_another_program_is_rejected() {
        let Some(path) = file() else { return };
        let reader = OpenOptions::new().read(true).open(&path).expect("it is there");
        let reported = RealDisk::open(&path, Options::default()).expect_err("it is open").to_string();
        assert!(reported.contains("has it open"), "{reported}");
        drop(reader);
        RealDisk::open(&path, Options::default()).expect("no other program has it open");
    }

    #[test]
    fn writes_are_rejected_unless_enabled() {
        let Some(file) = file() else { return };
        let (outcomes, _) = outcomes(&file, Options::default());
        assert_eq!([&outcomes[1], &outcomes[3]], [&Outcome::Refused; 2]);
    }

    #[test]
    fn path_that_is_no_disk_is_rejected() {
        let refused = |path: &Path, options| RealDisk::open(path, options).expect_err("no disk").to_string();
        let none = Options::default();
        assert_eq!(
            refused(Path::new("/dev/null"), none),
            "/dev/null: it is neither a block device nor a file"
        );
        assert!(refused(Path::new("/no/disk"), none).starts_with("/no/disk: No such file"));
        let Some(file) = file() else { return };
        let odd = Options { physical_bytes: Some(1536), ..none };
        assert!(refused(&file, odd).starts_with("physical sectors of 1536 bytes: they are"));
    }
}
