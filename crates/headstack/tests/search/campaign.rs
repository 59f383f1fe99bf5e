//! Draws cases, judges them, and collects what fails.

use crate::bench::Bench;
use crate::draw::Draw;
use crate::relations::{Case, Relation, Verdict};
use crate::shrink::smallest;
use headstack::model::drives;
use std::collections::BTreeMap;
use std::fmt::{self, Display, Formatter};

/// A broken relation with the smallest case that breaks it.
pub(crate) struct Failure {
    relation: &'static str,
    bound: &'static str,
    case: Case,
    says: String,
}

impl Display for Failure {
    fn fmt(&self, out: &mut Formatter<'_>) -> fmt::Result {
        let Failure { relation, bound, case, says } = self;
        writeln!(out, "BROKEN {relation} on {}: {says}", case.machine)?;
        writeln!(out, "  {bound}")?;
        writeln!(out, "# {relation} {} {}", case.seed, case.machine)?;
        write!(out, "{}", case.load)?;
        writeln!(out, "  the run:      headstack sim {} FILE.fio --seed {}", case.machine, case.seed)?;
        write!(
            out,
            "  the judgement: HEADSTACK_SEARCH_CASE=FILE.fio cargo test -p headstack --test search -- --ignored case"
        )
    }
}

/// One failure is kept for each relation, drive and kind of job.
type FailureKey = (&'static str, String, String);

/// A search from a seed.
pub(crate) struct Campaign {
    seed: u64,
    pub(crate) bench: Bench,
    relations: Vec<Relation>,
    failures: BTreeMap<FailureKey, Failure>,
    /// Judgements that a failure may take to become smaller.
    shrinking: u32,
    pub(crate) judged: u64,
}

/// A number that differs from that of every other place. *Source:* Steele, Lea and Flood (2014), SplitMix64.
fn mixed(seed: u64, place: u64) -> u64 {
    let mut bits = seed.wrapping_add(place.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15));
    bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    bits ^ (bits >> 31)
}

impl Campaign {
    /// A search among relations and drives whose names contain these texts.
    pub(crate) fn new(seed: u64, shrinking: u32, relation: &str) -> Campaign {
        let mut relations = crate::relations::all();
        relations.retain(|it| it.name.contains(relation));
        let (bench, failures) = (Bench::default(), BTreeMap::new());
        Campaign { seed, bench, relations, failures, shrinking, judged: 0 }
    }

    pub(crate) fn relations(&self) -> usize {
        self.relations.len()
    }

    pub(crate) fn failed(&self) -> usize {
        self.failures.len()
    }

    /// Draws and judges a case of a relation: relations take turns, and each goes through all drives, from one that the seed sets.
    pub(crate) fn search(&mut self, number: u64) {
        let names = drives::all();
        let (count, round) = (self.relations.len() as u64, names.len() as u64);
        let relation = (number % count) as usize;
        let first = mixed(self.seed, relation as u64) % round + number / count;
        // A step that shares no divisor with the number of drives meets all of them.
        let drives = (0..round).map(|step| (first + step) * 17 % round);
        for drive in drives {
            let spec = self.bench.spec(names[drive as usize].0).clone();
            let draw = self.relations[relation].draw;
            if let Some(case) = draw(&mut Draw::new(&spec, mixed(self.seed, number + round))) {
                self.judge(relation, case);
                return;
            }
        }
    }

    /// Judges a case of the relation of this name.
    pub(crate) fn judge_named(&mut self, name: &str, case: Case) {
        let found = self.relations.iter().position(|relation| relation.name == name);
        if let Some(relation) = found {
            self.judge(relation, case);
        }
    }

    fn judge(&mut self, relation: usize, case: Case) {
        let relation = &self.relations[relation];
        let rw: Vec<&str> = case.load.jobs.iter().map(|job| job.rw()).collect();
        let cache = if case.machine.has_no_write_cache() { " without cache" } else { "" };
        let key = (relation.name, case.machine.drive.clone(), format!("{}{cache}", rw.join("+")));
        if self.failures.contains_key(&key) {
            return;
        }
        self.judged += 1;
        let (case, says) = match (relation.judge)(&mut self.bench, &case) {
            Ok(Verdict::Holds) => return,
            Ok(Verdict::Elsewhere) => (case, "the relation is not about the case that it drew".to_string()),
            Ok(Verdict::Broken(violation)) => {
                let (case, violation) = smallest(&mut self.bench, relation, case, violation, self.shrinking);
                (case, violation.says)
            }
            Err(refusal) => (case, format!("the run is refused: {refusal}")),
        };
        let failure = Failure { relation: relation.name, bound: relation.bound, case, says };
        println!("{failure}\n");
        self.failures.insert(key, failure);
    }

    /// Panics with the list of what failed.
    pub(crate) fn finish(self) {
        let Campaign { seed, bench, failures, judged, .. } = self;
        println!("search: seed {seed}, {judged} cases, {} runs, {} requests", bench.made, bench.requests);
        let lines: Vec<String> = failures
            .values()
            .map(|failure| format!("{} on {}: {}", failure.relation, failure.case.machine, failure.says))
            .collect();
        assert!(
            lines.is_empty(),
            "{} relations are broken (seed {seed}):\n{}",
            lines.len(),
            lines.join("\n")
        );
    }
}

#[test]
fn relations_have_names_of_their_own_and_cases() {
    let specs: Vec<_> =
        ["exos-x18", "samsung-hd103sj"].map(|name| drives::load(name).expect("it ships")).into();
    let mut names: Vec<&str> = Vec::new();
    for relation in crate::relations::all() {
        assert!(!names.contains(&relation.name), "{} is there twice", relation.name);
        let cases = specs.iter().filter_map(|spec| (relation.draw)(&mut Draw::new(spec, 1)));
        assert!(cases.count() > 0, "{} has no case", relation.name);
        names.push(relation.name);
    }
}
