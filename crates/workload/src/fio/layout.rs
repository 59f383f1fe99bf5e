//! Where the files of jobs lie on the volumes of a rig.
//!
//! A file that bears a volume's name, with or without `/dev/` before it, is that volume; on a rig of one volume any
//! `/dev/…` is it, and so is the export of an NBD server. A name that is nearly a volume's is refused, because a slip of
//! the keys would send a job to another disk; one with a folder (`./data99`) is taken as it is. Every other file is a region of the first volume: the regions follow each other in the order in which
//! the jobs name them, each from a multiple of 4 KiB on, and each as long as the jobs that use it go.

use headstack_model::spec::{is_near, nearest as nearest_name};
use rand::RngExt;
use rand_pcg::Pcg64Mcg;

use super::error::{listed, nearest, show};
use super::extent::Extent;
use super::load::FioFile;
use super::settings::FileArea;
use super::value::Amount;
use crate::VolumeInfo;
use crate::only_disk::OnlyDisk;

/// Regions begin at multiples of this.
const REGION_ALIGNMENT: u64 = 4096;

#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Target {
    Volume(usize),
    Region(usize),
}

/// A file as one clone uses it, before its region has a place.
#[derive(Clone, Copy, Debug)]
pub(super) struct Use {
    pub(super) target: Target,
    start: u64,
    reach: u64,
    end: u64,
}

#[derive(Debug)]
pub(super) struct Layout<'a> {
    volumes: &'a [VolumeInfo],
    used: Vec<usize>,
    regions: Vec<Region>,
    /// Jobs that have a volume because they name nothing.
    nameless: Vec<String>,
    /// The first `/dev/…` that is the only volume.
    only_disk: OnlyDisk,
    /// Files that are all of the first volume: `fill_device`.
    fillers: Vec<String>,
}

#[derive(Debug)]
struct Region {
    name: String,
    bytes: u64,
    base: u64,
}

/// A clone as far as its files depend on it.
pub(super) struct Clone<'a> {
    pub(super) area: &'a FileArea,
    pub(super) number: u64,
    pub(super) least: u64,
}

pub(super) type Fault = (&'static str, String);

impl<'a> Layout<'a> {
    pub(super) fn new(volumes: &'a [VolumeInfo]) -> Layout<'a> {
        Layout {
            volumes,
            used: Vec::new(),
            regions: Vec::new(),
            nameless: Vec::new(),
            only_disk: OnlyDisk::default(),
            fillers: Vec::new(),
        }
    }

    /// What a name in `filename` refers to.
    ///
    /// *Errors:* there is no such device, or the name is nearly a volume's.
    pub(super) fn named(&mut self, name: &str) -> Result<Target, Fault> {
        let target = self.target(name)?;
        let volumes = self.volumes.iter().map(|volume| volume.name.as_str());
        match nearest_name(name, volumes).filter(|volume| !name.contains('/') && is_near(name, volume)) {
            Some(volume) if matches!(target, Target::Region(_)) => {
                let (name, volume) = (show(name), show(volume));
                let message = format!(
                    "`{name}` is no volume of the rig; did you mean `{volume}`? (a file of that name is `./{name}`)"
                );
                Err(("filename", message))
            }
            _ => Ok(target),
        }
    }

    /// What a name refers to.
    ///
    /// *Errors:* there is no such device.
    pub(super) fn target(&mut self, name: &str) -> Result<Target, Fault> {
        // The address of an iSCSI disk is a device, too.
        let bare = name.strip_prefix("/dev/").or(name.contains("://").then_some(name));
        let volume = self.volume(bare.unwrap_or(name));
        let only = bare.filter(|_| self.volumes.len() == 1).map(|_| 0);
        if only.is_some() {
            self.check_one_disk(name)?;
        }
        if let Some(volume) = volume.or(only) {
            return Ok(self.use_volume(volume));
        }
        if self.fillers.iter().any(|filler| filler == name) && !self.volumes.is_empty() {
            return Ok(self.use_volume(0));
        }
        if let Some(bare) = bare {
            let hint = nearest(bare, self.volumes.iter().map(|volume| volume.name.as_str()));
            let (name, all) = (show(name), self.volumes_listed());
            return Err(("filename", format!("`{name}` is no volume of the rig, which has {all}{hint}")));
        }
        let known = self.regions.iter().position(|region| region.name == name);
        Ok(Target::Region(known.unwrap_or_else(|| {
            self.regions.push(Region { name: name.to_string(), bytes: 0, base: 0 });
            self.regions.len() - 1
        })))
    }

    /// Refuses a second disk of a rig that has one: two jobs that have a disk each would share an arm without a word.
    fn check_one_disk(&mut self, name: &str) -> Result<(), Fault> {
        let Err(first) = self.only_disk.admit(name) else { return Ok(()) };
        let (name, first, volume) = (show(name), show(&first), show(&self.volumes[0].name));
        let message = format!(
            "`{name}` and `{first}` are two disks, and the rig has one volume, `{volume}`; of a rig of one drive `--set drive.count=2` makes `disk0` and `disk1`"
        );
        Err(("filename", message))
    }

    /// The disk for which the only volume of a rig stands, as far as the jobs say it.
    pub(super) fn into_only_disk(self) -> OnlyDisk {
        self.only_disk
    }

    /// The volume that an export of an NBD server stands for: that of its name, or the only one.
    ///
    /// *Errors:* the rig has several volumes, and none of that name.
    pub(super) fn export(&mut self, uri: Option<&str>) -> Result<Target, Fault> {
        let name = uri.and_then(export_name).unwrap_or_default();
        let only = (self.volumes.len() == 1).then_some(0);
        match self.volume(name).or(only) {
            Some(volume) => Ok(self.use_volume(volume)),
            None => {
                let hint = nearest(name, self.volumes.iter().map(|volume| volume.name.as_str()));
                let (name, all) = (show(name), self.volumes_listed());
                Err(("uri", format!("the export `{name}` is no volume of the rig, which has {all}{hint}")))
            }
        }
    }

    /// The volume of a job that names nothing, if the rig has only one.
    ///
    /// *Errors:* it has several, of which the job has to name one.
    pub(super) fn only_volume(&mut self, job: &str) -> Result<Option<Target>, Fault> {
        match self.volumes {
            [] => Ok(None),
            [_] => {
                if self.nameless.last().is_none_or(|last| last != job) {
                    self.nameless.push(job.to_string());
                }
                Ok(Some(self.use_volume(0)))
            }
            [first, ..] => {
                let (first, all) = (show(&first.name), self.volumes_listed());
                let message = format!(
                    "the job names no disk: filename=/dev/{first} is a volume of the rig, which has {all}; size=1g makes a file"
                );
                Err(("filename", message))
            }
        }
    }

    /// Makes a file that has no size all of the first volume.
    pub(super) fn fill(&mut self, name: &str) {
        let is_volume = name.starts_with("/dev/") || self.volume(name).is_some();
        if !is_volume && !self.fillers.iter().any(|filler| filler == name) {
            self.fillers.push(name.to_string());
        }
    }

    fn volume(&self, name: &str) -> Option<usize> {
        self.volumes.iter().position(|volume| volume.name == name)
    }

    fn use_volume(&mut self, volume: usize) -> Target {
        if !self.used.contains(&volume) {
            self.used.push(volume);
        }
        Target::Volume(volume)
    }

    fn volumes_listed(&self) -> String {
        let names: Vec<&str> = self.volumes.iter().map(|volume| volume.name.as_str()).collect();
        if names.is_empty() { "none".to_string() } else { listed(&names) }
    }

    pub(super) fn notes(&self) -> Vec<String> {
        let mut notes = Vec::new();
        let Some(first) = self.volumes.first() else { return notes };
        let nameless: Vec<&str> = self.nameless.iter().map(String::as_str).collect();
        if !nameless.is_empty() {
            notes.push(format!("{}: no filename and no size, so all of `{}`", listed(&nameless), first.name));
        }
        if !self.fillers.is_empty() {
            let files: Vec<&str> = self.fillers.iter().map(String::as_str).collect();
            notes.push(format!("{}: fills all of `{}`", listed(&files), first.name));
        }
        let files: Vec<&str> = self.regions.iter().map(|region| region.name.as_str()).collect();
        if self.volumes.len() > 1 && !files.is_empty() {
            let what = if files.len() == 1 { "a file" } else { "files" };
            notes.push(format!("{}: {what} on `{}`, the first volume", listed(&files), first.name));
        }
        notes
    }

    /// The length of a file before a clone uses it; an unused one gets its share of the size.
    fn length(&self, target: Target, share: u64) -> u64 {
        match target {
            Target::Volume(volume) => self.volumes[volume].bytes(),
            Target::Region(region) if self.regions[region].bytes == 0 => share,
            Target::Region(region) => self.regions[region].bytes,
        }
    }

    pub(super) fn use_files(
        &mut self,
        clone: &Clone<'_>,
        targets: &[Target],
        random: &mut Pcg64Mcg,
    ) -> Result<(Vec<Use>, u64), Fault> {
        let area = clone.area;
        let size = area.size.fixed();
        let files = targets.len() as u64;
        let share = size / files;
        let there: u64 = targets.iter().map(|target| self.length(*target, share)).sum();
        if there == 0 && area.file_size.is_none() {
            return Err(("size", self.sizeless(targets)));
        }
        let mut longer = (size % files) / clone.least;
        let mut uses = Vec::with_capacity(targets.len());
        let mut total = 0;
        for target in targets {
            let real = self.length(*target, share);
            let start = area.start(clone.number, real, clone.least);
            let mut reach = match area.file_size {
                None => share,
                Some(range) => self.file_size(range, real, clone.least, random),
            };
            if area.file_size.is_none() && longer > 0 {
                longer -= 1;
                reach += clone.least;
            }
            if reach == 0 {
                reach = real;
            }
            if area.file_size.is_some() || share == 0 {
                let beyond = format!("begins {start} bytes into a file of {reach} bytes");
                reach = reach.checked_sub(start).filter(|left| *left > 0).ok_or(("offset", beyond))?;
            }
            if let Amount::Percent(_) = area.size {
                reach = area.size.bytes(reach + start).min(reach);
                reach -= reach % clone.least;
            }
            total += match area.io_size {
                share @ Amount::Percent(_) => share.bytes(reach),
                Amount::Bytes(_) | Amount::Zones(_) => reach,
            };
            uses.push(self.extend(*target, start, reach)?);
        }
        Ok((uses, if size == 0 { total } else { size.min(total) }))
    }

    /// The message about files that have neither a length nor a size.
    fn sizeless(&self, targets: &[Target]) -> String {
        let names = targets.iter().filter_map(|target| match target {
            Target::Region(region) => Some(self.regions[*region].name.as_str()),
            Target::Volume(_) => None,
        });
        let (names, all) = (names.collect::<Vec<_>>(), self.volumes_listed());
        let first = self.volumes.first().map_or("sda", |volume| &volume.name);
        format!(
            "{}: no volume of the rig, which has {all}, and a file needs its size; say size=1g, or filename=/dev/{first}",
            listed(&names)
        )
    }

    /// The length of a file with a size: its present length if that lies in the range.
    fn file_size(&self, (low, high): (u64, u64), real: u64, least: u64, random: &mut Pcg64Mcg) -> u64 {
        if (low..=high).contains(&real) {
            return real;
        }
        if low == high {
            return low;
        }
        let drawn = random.random_range(low..high);
        drawn - drawn % least
    }

    /// Makes a region long enough for a use; a volume keeps its length.
    fn extend(&mut self, target: Target, start: u64, reach: u64) -> Result<Use, Fault> {
        let end = match target {
            Target::Volume(volume) => {
                let bytes = self.volumes[volume].bytes();
                if start >= bytes {
                    let name = &self.volumes[volume].name;
                    let message = format!("begins {start} bytes into `{name}`, which has {bytes}");
                    return Err(("offset", message));
                }
                bytes
            }
            Target::Region(region) => {
                let bytes = &mut self.regions[region].bytes;
                *bytes = start.saturating_add(reach).max(*bytes);
                *bytes
            }
        };
        Ok(Use { target, start, reach, end })
    }

    pub(super) fn assign_extents(&mut self) -> Result<(), Fault> {
        let Some(first) = self.volumes.first() else {
            return Err(("filename", "the rig has no volume".to_string()));
        };
        let step = u64::from(first.sector_bytes).max(REGION_ALIGNMENT);
        let mut base = 0u64;
        for region in &mut self.regions {
            region.base = base;
            base = base.saturating_add(region.bytes).checked_next_multiple_of(step).unwrap_or(u64::MAX);
            if region.base.saturating_add(region.bytes) > first.bytes() {
                let (name, bytes) = (&region.name, region.bytes);
                let left = first.bytes().saturating_sub(region.base);
                let message =
                    format!("`{name}` has {bytes} bytes, where {left} are left on `{}`", first.name);
                return Err(("size", message));
            }
        }
        Ok(())
    }

    pub(super) fn extent(&self, at: &Use) -> Extent {
        let (volume, base) = match at.target {
            Target::Volume(volume) => (volume as u32, 0),
            Target::Region(region) => (0, self.regions[region].base),
        };
        let sector = u64::from(self.volumes[volume as usize].sector_bytes);
        Extent { volume, base, start: at.start, reach: at.reach, end: at.end, sector }
    }

    pub(super) fn files(&self) -> Vec<FioFile> {
        let volume = |at: &usize| FioFile {
            name: self.volumes[*at].name.clone(),
            volume: *at as u32,
            first_byte: 0,
            bytes: self.volumes[*at].bytes(),
        };
        let region = |region: &Region| FioFile {
            name: region.name.clone(),
            volume: 0,
            first_byte: region.base,
            bytes: region.bytes,
        };
        self.used.iter().map(volume).chain(self.regions.iter().map(region)).collect()
    }
}

/// The name of the export in a URI of NBD: `nbd+unix:///NAME?socket=…`, `nbd://HOST:PORT/NAME`.
fn export_name(uri: &str) -> Option<&str> {
    let (_, rest) = uri.split_once("://")?;
    let (_, path) = rest.split_once('/')?;
    path.split(['?', '#']).next().filter(|name| !name.is_empty())
}
