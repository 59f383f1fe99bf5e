//! Which of a job's files is served next.

use rand::RngExt;
use rand_pcg::Pcg64Mcg;

use super::extent::Extent;
use super::file::{File, Pattern, PlaceDice};
use super::settings::{Service, ServiceChoice};
use super::strided::Stride;
use super::zoned::ZonedFile;

#[derive(Clone, Debug)]
pub(super) struct Files {
    files: Vec<File>,
    service: Service,
    burst_left: u64,
    current: Option<usize>,
    next: usize,
}

impl Files {
    pub(super) fn new(
        service: Service,
        pattern: &Pattern,
        extents: Vec<(Extent, Option<ZonedFile>)>,
        stride: Option<&Stride>,
        dice: &mut PlaceDice,
    ) -> Files {
        Files {
            files: extents
                .into_iter()
                .map(|(extent, zones)| File::new(extent, zones, pattern, stride, dice))
                .collect(),
            service,
            burst_left: 0,
            current: None,
            next: 0,
        }
    }

    pub(super) fn len(&self) -> usize {
        self.files.len()
    }

    pub(super) fn file_at(&self, index: usize) -> &File {
        &self.files[index]
    }

    pub(super) fn at_mut(&mut self, index: usize) -> &mut File {
        &mut self.files[index]
    }

    pub(super) fn are_done(&self) -> bool {
        self.files.iter().all(|file| file.done)
    }

    pub(super) fn return_to_first_zone(&mut self) {
        self.files.iter_mut().for_each(File::return_to_first_zone);
    }

    pub(super) fn rewind(&mut self, dice: &mut PlaceDice) {
        self.files.iter_mut().for_each(|file| file.rewind(dice));
    }

    /// The file that is used next; `None` if all are done.
    #[inline]
    pub(super) fn choose(&mut self, random: &mut Pcg64Mcg) -> Option<usize> {
        if let [only] = &self.files[..] {
            return (!only.done).then_some(0);
        }
        if let Some(current) = self.current.filter(|at| !self.files[*at].done) {
            if self.service.choice == ServiceChoice::Sequential {
                return Some(current);
            }
            if self.burst_left > 0 {
                self.burst_left -= 1;
                return Some(current);
            }
        }
        let found = match self.service.choice {
            ServiceChoice::Random => self.draw(random)?,
            ServiceChoice::RoundRobin | ServiceChoice::Sequential => self.follow()?,
        };
        (self.current, self.burst_left) = (Some(found), self.service.burst - 1);
        Some(found)
    }

    /// The next file in their order that is not done.
    fn follow(&mut self) -> Option<usize> {
        let count = self.files.len();
        let mut order = (0..count).map(|ahead| (self.next + ahead) % count);
        let found = order.find(|at| !self.files[*at].done)?;
        self.next = (found + 1) % count;
        Some(found)
    }

    fn draw(&self, random: &mut Pcg64Mcg) -> Option<usize> {
        if self.are_done() {
            return None;
        }
        loop {
            let at = random.random_range(0..self.files.len());
            if !self.files[at].done {
                return Some(at);
            }
        }
    }
}
