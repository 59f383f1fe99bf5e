//! Keys that a caller sets over those of the drives, to see what a value would change.

use crate::study::StudyError;
use headstack_sim::RigError;
use headstack_sim::rig::Rig;

/// Keys set over those of some drives.
#[derive(Clone, Debug, Default)]
pub struct Overrides(Vec<Override>);

#[derive(Clone, Debug)]
struct Override {
    /// The drives' names, with `*` for any text.
    drives: String,
    /// The key and its value in TOML.
    key: String,
    value: String,
}

impl Overrides {
    /// Adds `DRIVES:KEY=VALUE`: a drive's name in which `*` stands for any text, a key of the drive file, a value in TOML.
    ///
    /// *Errors:* the text has not that form.
    pub fn add(&mut self, text: &str) -> Result<(), String> {
        let parts = text.split_once(':').and_then(|(drives, set)| Some((drives, set.split_once('=')?)));
        let (drives, (key, value)) =
            parts.ok_or_else(|| format!("`{text}` is not DRIVES:KEY=VALUE, as in `hd*:queue.order=fcfs`"))?;
        let [drives, key, value] = [drives, key, value].map(|part| part.trim().to_string());
        self.0.push(Override { drives, key, value });
        Ok(())
    }

    /// Sets the keys that concern the drives of this rig, which is called `drive`. A value may be valid only once another is set,
    /// so that the order in which they were added does not matter.
    pub(super) fn apply(&self, drive: &str, rig: &mut Rig) -> Result<(), StudyError> {
        let mut left: Vec<&Override> = self.0.iter().filter(|set| is_like(&set.drives, drive)).collect();
        while !left.is_empty() {
            let before = left.len();
            let mut last: Option<RigError> = None;
            left.retain(|set| match rig.set(&format!("drive.{}", set.key), &set.value) {
                Ok(()) => false,
                Err(error) => {
                    last = Some(error);
                    true
                }
            });
            if let Some(error) = last.filter(|_| left.len() == before) {
                return Err(error.into());
            }
        }
        Ok(())
    }
}

/// Whether a name is like a pattern, in which `*` stands for any text.
pub(super) fn is_like(pattern: &str, name: &str) -> bool {
    match pattern.split_once('*') {
        None => pattern == name,
        Some((start, rest)) => {
            let Some(name) = name.strip_prefix(start) else { return false };
            let ends = name.char_indices().map(|(at, _)| at).chain([name.len()]);
            ends.into_iter().any(|at| is_like(rest, &name[at..]))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use headstack_model::drives;

    #[test]
    fn star_stands_for_any_text() {
        for (pattern, name, holds) in [
            ("*", "a", true),
            ("hd*", "hd103uj", true),
            ("*uj", "hd103uj", true),
            ("h*1*j", "hd103uj", true),
            ("h*2*j", "hd103uj", false),
            ("hd103", "hd103uj", false),
            ("hd103uj*", "hd103uj", true),
        ] {
            assert_eq!(is_like(pattern, name), holds, "{pattern} {name}");
        }
    }

    #[test]
    fn order_of_overrides_does_not_matter() {
        let sets = ["exos*:cache.dirty_max_sectors=512", "exos*:cache.dirty_start_sectors=256"];
        for order in [[0, 1], [1, 0]] {
            let mut overrides = Overrides::default();
            order.iter().for_each(|at| overrides.add(sets[*at]).expect("it has the form"));
            let mut rig = Rig::from_drive(drives::load("exos-x16").expect("it is shipped"));
            overrides.apply("exos-x16", &mut rig).expect("the values are valid together");
            let cache = &rig.resolved().drive[0].spec.cache;
            assert_eq!((cache.dirty_max_sectors, cache.dirty_start_sectors), (512, 256));
        }
    }

    #[test]
    fn bad_override_is_rejected() {
        let mut overrides = Overrides::default();
        assert!(overrides.add("queue.order=fcfs").is_err());
        overrides.add("*:queue.odrer=fcfs").expect("it has the form");
        let mut rig = Rig::from_drive(drives::load("exos-x16").expect("it is shipped"));
        let error = overrides.apply("exos-x16", &mut rig).expect_err("there is no such key");
        assert!(error.to_string().contains("odrer"), "{error}");
    }
}
