//! Sets keys of a rig by their paths.

use super::resolve::resolve;
use super::spec::RigSpec;
use super::{Rig, RigError, document, paths};
use headstack_model::spec::Fault;
use headstack_model::{DriveSpec, drives};
use std::collections::BTreeMap;
use toml::{Table, Value};

/// A key, its value as given, and whether that is a text although it reads as another value.
#[derive(Clone, Copy)]
struct Setting<'a> {
    path: &'a str,
    given: &'a str,
    is_text: bool,
}

impl Setting<'_> {
    fn value(&self) -> Value {
        if self.is_text { Value::String(self.given.to_string()) } else { document::value(self.given) }
    }

    /// A fault that names no key is one of the setting itself.
    fn name(&self, fault: Fault) -> Fault {
        let key = if fault.key.is_empty() { format!("{}={}", self.path, self.given) } else { fault.key };
        Fault { key, message: fault.message }
    }
}

impl Rig {
    /// Sets the key at a dotted path (`drive.queue.depth`, `drive.order`) to a value in TOML; a value that is not TOML is a text.
    /// A path into the drives changes all of them; `drive.VOLUME.…` those with that name.
    ///
    /// *Errors:* no such key, with the nearest; an invalid value. The rig is then unchanged.
    pub fn set(&mut self, path: &str, value: &str) -> Result<(), RigError> {
        self.set_all([(path, value)])
    }

    /// Sets several keys as [`Rig::set`] does, one after the other, and checks them together: a value that is invalid with the old value of
    /// another key is allowed, if it is valid with the new one.
    ///
    /// *Errors:* as [`Rig::set`], with the key at fault. The rig is then unchanged.
    pub fn set_all<'a>(
        &mut self,
        settings: impl IntoIterator<Item = (&'a str, &'a str)>,
    ) -> Result<(), RigError> {
        let setting = |(path, given)| Setting { path, given, is_text: false };
        let mut settings: Vec<Setting<'_>> = settings.into_iter().map(setting).collect();
        let (before, presets) = (&self.document, &mut self.presets);
        let mut changed = changed(before, &settings, presets);
        // A number may be meant as a text, where the key requires one.
        if changed.is_err() && mark_texts(before, &mut settings, presets) {
            changed = self::changed(before, &settings, presets);
        }
        let at = |fault| document::locate(fault, "", before, &self.origin);
        (self.document, self.resolved) = changed.map_err(at)?;
        Ok(())
    }
}

type Presets = BTreeMap<String, DriveSpec>;

/// The document with these settings, checked.
///
/// *Errors:* the key at fault; where a fault names none, the setting without which there is no fault.
fn changed(
    document: &Table,
    settings: &[Setting<'_>],
    presets: &mut Presets,
) -> Result<(Table, RigSpec), Fault> {
    let mut changed = document.clone();
    for setting in settings {
        paths::put_at(&mut changed, setting.path, &setting.value()).map_err(|fault| setting.name(fault))?;
    }
    let mut find = |name: &str| drives::load(name);
    match resolve(&changed, presets, &mut find) {
        Ok(resolved) => Ok((changed, resolved)),
        Err(fault) if fault.key.is_empty() => {
            let is_cause = |left_out: &usize| is_accepted_without(document, settings, *left_out, presets);
            let cause = (0..settings.len()).find(is_cause).or(settings.len().checked_sub(1));
            Err(cause.map_or(fault.clone(), |cause| settings[cause].name(fault)))
        }
        Err(fault) => Err(fault),
    }
}

fn is_accepted_without(
    document: &Table,
    settings: &[Setting<'_>],
    left_out: usize,
    presets: &mut Presets,
) -> bool {
    let mut others = settings.to_vec();
    others.remove(left_out);
    let mut changed = document.clone();
    others.iter().all(|setting| paths::put_at(&mut changed, setting.path, &setting.value()).is_ok())
        && resolve(&changed, presets, &mut |name| drives::load(name)).is_ok()
}

/// Marks the settings that are accepted alone only as texts; returns whether there are any.
fn mark_texts(document: &Table, settings: &mut [Setting<'_>], presets: &mut Presets) -> bool {
    let mut any = false;
    for setting in settings.iter_mut().filter(|setting| !setting.value().is_str()) {
        let text = Setting { is_text: true, ..*setting };
        if changed(document, &[*setting], presets).is_err() && changed(document, &[text], presets).is_ok() {
            (setting.is_text, any) = (true, true);
        }
    }
    any
}
