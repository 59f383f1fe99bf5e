//! The studies, in one list, and how one is run.
//!
//! A study receives a [`Length`] and a [`Bench`], to which it submits its runs. The bench decides on how many cores they run, who observes
//! them, and where files come from. The results do not depend on the bench.

use crate::expect::{self, ExpectError, Expected};
use crate::judge::{self, Judged, Measured, Verdict};
use crate::{
    everyday, interfaces, modern_drives, ncq, rearrangement, scheduling, st2000dm006, streams, striping,
    today, traxtents, validation,
};
use headstack::report::Section;
use headstack_model::SpecError;
use headstack_model::spec::nearest;
use headstack_sim::{DeviceError, RigError};
use headstack_workload::ShapeError;
use headstack_workload::process::SyntheticError;
use std::io::Read;
use thiserror::Error;

/// A study: what was published, and how it is computed again.
pub struct Study {
    /// Its name: that of its folder in `studies/`.
    pub id: &'static str,
    /// What it is about, as a heading.
    pub title: &'static str,
    /// What it computes, in a sentence.
    pub summary: &'static str,
    /// Its `expect.tsv`.
    pub expect: &'static str,
    /// Computes its metrics.
    pub run: fn(&Setting<'_>) -> Result<Findings, StudyError>,
}

const ALL: [Study; 12] = [
    interfaces::STUDY,
    everyday::STUDY,
    modern_drives::STUDY,
    ncq::STUDY,
    rearrangement::STUDY,
    scheduling::STUDY,
    st2000dm006::STUDY,
    streams::STUDY,
    striping::STUDY,
    today::STUDY,
    traxtents::STUDY,
    validation::STUDY,
];

/// All studies, in the order of their names.
pub fn all() -> &'static [Study] {
    &ALL
}

/// The study of this name.
///
/// *Errors:* there is none; the nearest name is given.
pub fn named(id: &str) -> Result<&'static Study, UnknownStudy> {
    let found = ALL.iter().find(|study| study.id == id);
    found.ok_or_else(|| UnknownStudy {
        found: id.chars().take(60).collect(),
        nearest: nearest(id, ALL.iter().map(|study| study.id)).map(str::to_string),
    })
}

/// No study has this name.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error(
    "no study is called `{found}`{}",
    .nearest.as_ref().map(|known| format!("; did you mean `{known}`?")).unwrap_or_default()
)]
pub struct UnknownStudy {
    /// The name met.
    pub found: String,
    /// The study with the most similar name, if any.
    pub nearest: Option<String>,
}

/// The size of a study's runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Length {
    /// The size for which its tolerances were chosen.
    Full,
    /// So little that it takes seconds: fewer requests, and rows may be left out.
    Quick,
}

impl Length {
    /// The first number for a full run, the second for a quick one.
    pub fn pick<T>(self, full: T, quick: T) -> T {
        match self {
            Length::Full => full,
            Length::Quick => quick,
        }
    }
}

/// One run of a study, independent of all others.
pub type Task<'a> = Box<dyn FnOnce() + Send + 'a>;

/// Executes the runs of a study.
pub trait Bench: Sync {
    /// Executes all tasks, in any order and any number at a time; returns when all have ended.
    fn run(&self, tasks: Vec<Task<'_>>);

    /// A file that is not part of Headstack; `None` if it was not handed in.
    ///
    /// *Errors:* the file was handed in and cannot be read; the text names its path.
    fn open(&self, name: &str) -> Result<Option<Box<dyn Read>>, String>;
}

/// A bench that runs one task after the other, and to which no files were handed in.
#[derive(Clone, Copy, Debug, Default)]
pub struct Alone;

impl Bench for Alone {
    fn run(&self, tasks: Vec<Task<'_>>) {
        tasks.into_iter().for_each(|task| task());
    }

    fn open(&self, _: &str) -> Result<Option<Box<dyn Read>>, String> {
        Ok(None)
    }
}

/// The input of a study.
pub struct Setting<'a> {
    /// How much to run.
    pub length: Length,
    /// The rows of its `expect.tsv`.
    pub rows: &'a [Expected],
    /// The bench that runs it.
    pub bench: &'a dyn Bench,
}

impl Setting<'_> {
    /// The value published for a metric.
    pub fn published(&self, metric: &str) -> Option<f64> {
        self.rows.iter().find(|row| row.metric == metric)?.value
    }

    /// Applies a function to each item, independently. Results come in the order of the items.
    ///
    /// *Errors:* the error of the first item that fails.
    pub fn map<A: Sync, T: Send>(
        &self,
        items: &[A],
        one: impl Fn(&A) -> Result<T, StudyError> + Sync,
    ) -> Result<Vec<T>, StudyError> {
        let mut slots: Vec<Option<Result<T, StudyError>>> = items.iter().map(|_| None).collect();
        let one = &one;
        let tasks = slots
            .iter_mut()
            .zip(items)
            .map(|(slot, item)| -> Task<'_> { Box::new(move || *slot = Some(one(item))) });
        self.bench.run(tasks.collect());
        slots.into_iter().map(|slot| slot.expect("the bench does every task")).collect()
    }
}

/// The results of a study.
#[derive(Clone, Debug, Default)]
pub struct Findings {
    /// Its values, each under the metric of its row.
    pub measured: Vec<Measured>,
    /// Its charts and tables.
    pub sections: Vec<Section>,
}

impl Findings {
    pub(crate) fn new(measured: Vec<Measured>, sections: impl IntoIterator<Item = Section>) -> Findings {
        Findings { measured, sections: sections.into_iter().collect() }
    }

    /// The findings of a study's parts, in their order.
    pub(crate) fn join(parts: impl IntoIterator<Item = Findings>) -> Findings {
        let mut all = Findings::default();
        for part in parts {
            all.measured.extend(part.measured);
            all.sections.extend(part.sections);
        }
        all
    }
}

/// Why a study could not be run.
#[derive(Debug, Error)]
pub enum StudyError {
    /// Its `expect.tsv` is invalid.
    #[error(transparent)]
    Expect(#[from] ExpectError),
    /// A drive that is not shipped, or is invalid.
    #[error(transparent)]
    Spec(#[from] SpecError),
    /// A drive that cannot be simulated.
    #[error(transparent)]
    Device(#[from] DeviceError),
    /// A rig is invalid.
    #[error(transparent)]
    Rig(#[from] RigError),
    /// A run failed.
    #[error(transparent)]
    Run(#[from] headstack::Error),
    /// A load cannot be built.
    #[error(transparent)]
    Shape(#[from] ShapeError),
    /// Processes cannot be built.
    #[error(transparent)]
    Synthetic(#[from] SyntheticError),
    /// A file that was handed in cannot be used; the text names its path.
    #[error("{0}")]
    Input(String),
}

/// A completed study: its judged rows, its charts and its tables.
#[derive(Clone, Debug)]
pub struct Reproduction {
    /// The rows, in the order of `expect.tsv`.
    pub rows: Vec<Judged>,
    /// Its charts and tables.
    pub sections: Vec<Section>,
}

impl Reproduction {
    /// The rows that are off.
    pub fn misses(&self) -> impl Iterator<Item = &Judged> {
        self.rows.iter().filter(|row| row.verdict == Verdict::Off)
    }
}

impl Study {
    /// The rows of its `expect.tsv`.
    ///
    /// *Errors:* the first fault in them.
    pub fn expected(&self) -> Result<Vec<Expected>, ExpectError> {
        expect::parse(self.expect, &format!("studies/{}/expect.tsv", self.id))
    }

    /// Runs the study and judges its rows.
    ///
    /// *Errors:* it cannot be run.
    pub fn reproduce(&self, length: Length, bench: &dyn Bench) -> Result<Reproduction, StudyError> {
        let rows = self.expected()?;
        let findings = (self.run)(&Setting { length, rows: &rows, bench })?;
        Ok(Reproduction { rows: judge::judge(rows, &findings.measured, length), sections: findings.sections })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn studies_are_sorted_and_unknown_one_is_rejected() {
        assert!(all().windows(2).all(|pair| pair[0].id < pair[1].id));
        let error = named("modern-drive").err().expect("an s is missing");
        assert_eq!(error.to_string(), "no study is called `modern-drive`; did you mean `modern-drives`?");
    }

    #[test]
    fn every_study_has_rows_and_a_summary_sentence() {
        for study in all() {
            let rows = study.expected().unwrap_or_else(|error| panic!("{error}"));
            assert!(!rows.is_empty() && study.summary.ends_with('.'), "{}", study.id);
        }
    }
}
