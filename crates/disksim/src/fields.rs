//! The keys of a block: each is read by its name, or noted as not carried over.

use crate::lexer::Place;
use crate::not_carried::NotCarried;
use crate::parse::{Block, Param, Value};
use headstack_model::SpecError;
use std::cell::RefCell;
use std::collections::BTreeMap;

/// What could not be carried over, from all blocks.
#[derive(Debug, Default)]
pub(crate) struct Notes(RefCell<Vec<NotCarried>>);

impl Notes {
    pub(crate) fn add(&self, file: &str, line: usize, key: &str, why: impl Into<String>) {
        let note = NotCarried { file: file.to_string(), line, key: key.to_string(), why: why.into() };
        self.0.borrow_mut().push(note);
    }

    pub(crate) fn into_list(self) -> Vec<NotCarried> {
        self.0.into_inner()
    }
}

/// The keys of a block that are not read yet.
pub(crate) struct Fields<'a> {
    pub(crate) block: &'a Block,
    left: BTreeMap<&'a str, &'a Param>,
    pub(crate) notes: &'a Notes,
}

impl<'a> Fields<'a> {
    pub(crate) fn new(block: &'a Block, notes: &'a Notes) -> Fields<'a> {
        let mut left = BTreeMap::new();
        for param in &block.params {
            if let Some(earlier) = left.insert(param.key.as_str(), param) {
                notes.add(
                    &earlier.place.file,
                    earlier.place.line,
                    &earlier.key,
                    "given again below; the last one counts",
                );
            }
        }
        Fields { block, left, notes }
    }

    pub(crate) fn take(&mut self, key: &str) -> Option<&'a Param> {
        self.left.remove(key)
    }

    /// The place of a key, or of the block if the key is missing.
    fn key_place(&self, key: &str) -> &'a Place {
        self.block.params.iter().rev().find(|p| p.key == key).map_or(&self.block.place, |p| &p.place)
    }

    /// An error at a key, or at the block if the key is missing.
    pub(crate) fn error(&self, key: &str, message: impl Into<String>) -> SpecError {
        self.key_place(key).error(key, message)
    }

    /// Notes that a key, if present, is not carried over.
    pub(crate) fn skip(&mut self, key: &str, why: &str) {
        if let Some(param) = self.take(key) {
            self.notes.add(&param.place.file, param.place.line, key, why);
        }
    }

    /// Adds a note to a key that was read, or to the block.
    pub(crate) fn note(&self, key: &str, why: impl Into<String>) {
        let place = self.key_place(key);
        self.notes.add(&place.file, place.line, key, why);
    }

    pub(crate) fn optional_number(&mut self, key: &str) -> Result<Option<f64>, SpecError> {
        Ok(self.read(key, "needs a number", number)?.map(|(number, _)| number))
    }

    /// The value of a key, if present, converted by `get`.
    fn read<T>(
        &mut self,
        key: &str,
        needs: &str,
        get: impl Fn(&'a Value) -> Option<T>,
    ) -> Result<Option<(T, &'a Param)>, SpecError> {
        let Some(param) = self.take(key) else { return Ok(None) };
        let value = get(&param.value).ok_or_else(|| param.place.error(key, needs))?;
        Ok(Some((value, param)))
    }

    pub(crate) fn number(&mut self, key: &str) -> Result<f64, SpecError> {
        self.optional_number(key)?.ok_or_else(|| self.error(key, "is missing"))
    }

    /// A number; if missing, zero, which is noted.
    pub(crate) fn number_or_zero(&mut self, key: &str) -> Result<f64, SpecError> {
        let number = self.optional_number(key)?;
        if number.is_none() {
            self.note(key, "is missing; taken as 0");
        }
        Ok(number.unwrap_or(0.0))
    }

    /// A required integer from 0 on.
    pub(crate) fn count(&mut self, key: &str) -> Result<u32, SpecError> {
        let number = self.number(key)?;
        whole(number)
            .ok_or_else(|| self.error(key, format!("{number} is no whole number from 0 to {}", u32::MAX)))
    }

    /// An integer from 0 on; if missing, `default`, which is noted.
    pub(crate) fn count_or(&mut self, key: &str, default: u32) -> Result<u32, SpecError> {
        if self.left.contains_key(key) {
            return self.count(key);
        }
        self.note(key, format!("is missing; taken as {default}"));
        Ok(default)
    }

    /// 0 or 1; if missing, 0.
    pub(crate) fn flag(&mut self, key: &str) -> Result<bool, SpecError> {
        match self.optional_number(key)? {
            None => Ok(false),
            Some(0.0) => Ok(false),
            Some(1.0) => Ok(true),
            Some(number) => Err(self.error(key, format!("{number} is neither 0 nor 1"))),
        }
    }

    pub(crate) fn word(&mut self, key: &str) -> Result<Option<(&'a str, &'a Param)>, SpecError> {
        self.read(key, "needs a word", Value::word)
    }

    pub(crate) fn list(&mut self, key: &str) -> Result<Option<&'a [Value]>, SpecError> {
        let list = |value: &'a Value| if let Value::List(items) = value { Some(&items[..]) } else { None };
        Ok(self.read(key, "needs a list `[ … ]`", list)?.map(|(items, _)| items))
    }

    pub(crate) fn numbers(&mut self, key: &str) -> Result<Option<Vec<f64>>, SpecError> {
        let Some(items) = self.list(key)? else { return Ok(None) };
        let numbers: Option<Vec<f64>> = items.iter().map(number).collect();
        numbers.map(Some).ok_or_else(|| self.error(key, "needs a list of numbers"))
    }

    /// A list of integers from 0 on; empty if the key is missing.
    pub(crate) fn indices(&mut self, key: &str) -> Result<Vec<u64>, SpecError> {
        let items = self.list(key)?.unwrap_or_default();
        let indices: Option<Vec<u64>> = items
            .iter()
            .map(|item| match item {
                Value::Int(number) => u64::try_from(*number).ok(),
                _ => None,
            })
            .collect();
        indices.ok_or_else(|| self.error(key, "needs a list of whole numbers from 0 on"))
    }

    pub(crate) fn block(&mut self, key: &str) -> Result<&'a Block, SpecError> {
        let block = |value: &'a Value| if let Value::Block(block) = value { Some(block) } else { None };
        match self.read(key, "needs a block `type { … }`", block)? {
            Some((block, _)) => Ok(block),
            None => Err(self.error(key, "is missing")),
        }
    }

    /// Notes all keys that were not read.
    pub(crate) fn finish(self) {
        for param in self.left.values() {
            self.notes.add(
                &param.place.file,
                param.place.line,
                &param.key,
                "is not a key known for this block",
            );
        }
    }
}

pub(crate) fn number(value: &Value) -> Option<f64> {
    match value {
        Value::Int(number) => Some(*number as f64),
        Value::Float(number) => Some(*number),
        _ => None,
    }
}

pub(crate) fn whole(number: f64) -> Option<u32> {
    (number >= 0.0 && number <= f64::from(u32::MAX) && number.fract() == 0.0).then_some(number as u32)
}

pub(crate) fn words(fields: &mut Fields, key: &str) -> Result<Vec<String>, SpecError> {
    let items = fields.list(key)?.unwrap_or_default();
    let words: Option<Vec<String>> = items.iter().map(|item| item.word().map(str::to_string)).collect();
    match words {
        Some(words) if !words.is_empty() => Ok(words),
        _ => Err(fields.error(key, "needs a list of names")),
    }
}
