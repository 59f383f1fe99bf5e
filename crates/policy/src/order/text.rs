//! Orders by name, with their parameters in parentheses: `sptf`, `vr(0.2)`.

use super::{BuiltIn, Entry, Knowledge, Order, Parameter, all};
use headstack_model::spec::nearest;
use thiserror::Error;

pub(super) const MOST_PARAMETERS: usize = 3;

/// A text that names no order.
#[derive(Clone, Debug, PartialEq, Error)]
#[allow(missing_docs, reason = "the names of the fields say it")]
pub enum OrderError {
    /// There is no order of that name.
    #[error("no order is called `{name}`; the nearest is `{nearest}`")]
    Unknown { name: String, nearest: &'static str },
    /// The parentheses do not match.
    #[error("order `{text}`: write it as `{form}`")]
    Form { text: String, form: String },
    /// More parameters than the order has.
    #[error("order `{text}`: {given} parameters where `{form}` takes {most} at most")]
    Count { text: String, form: String, given: usize, most: usize },
    /// A parameter that is not a number as it should be.
    #[error("order `{text}`: {letter} is `{value}`; it is {summary}: {least} to {most}{whole}")]
    Parameter {
        text: String,
        letter: &'static str,
        value: String,
        summary: &'static str,
        least: f64,
        most: f64,
        whole: &'static str,
    },
}

/// The order that `text` names, with its parameters.
///
/// *Errors:* no such order, with the nearest; a parameter out of its range.
pub fn by_name(text: &str) -> Result<Box<dyn Order>, OrderError> {
    built_in(text).map(|order| Box::new(order) as Box<dyn Order>)
}

/// The order that `text` names, for calls without dynamic dispatch.
///
/// *Errors:* as [`by_name`].
pub fn built_in(text: &str) -> Result<BuiltIn, OrderError> {
    let (entry, given) = parts(text)?;
    let Some(given) = given else { return Ok(entry.order()) };
    let Some(given) = given.trim_end().strip_suffix(')') else {
        return Err(OrderError::Form { text: text.to_owned(), form: entry.form() });
    };
    Ok((entry.make)(&values(text, entry, given)?))
}

/// The knowledge of the order that `text` names.
///
/// *Errors:* no such order, with the nearest.
pub fn knowledge(text: &str) -> Result<Knowledge, OrderError> {
    Ok(parts(text)?.0.knowledge)
}

/// The order that `text` names, and the text after its opening parenthesis.
fn parts(text: &str) -> Result<(&'static Entry, Option<&str>), OrderError> {
    let (name, given) = match text.split_once('(') {
        Some((name, rest)) => (name.trim(), Some(rest)),
        None => (text, None),
    };
    let entry = all().iter().find(|entry| entry.name == name);
    let unknown = || {
        let nearest = nearest(name, all().iter().map(|entry| entry.name)).expect("the list is not empty");
        OrderError::Unknown { name: name.to_owned(), nearest }
    };
    Ok((entry.ok_or_else(unknown)?, given))
}

fn values(text: &str, entry: &Entry, given: &str) -> Result<[f64; MOST_PARAMETERS], OrderError> {
    let mut values = entry.defaults();
    let (count, most) = (given.split(',').count(), entry.parameters.len());
    if count > most {
        return Err(OrderError::Count { text: text.to_owned(), form: entry.form(), given: count, most });
    }
    for ((value, parameter), given) in values.iter_mut().zip(entry.parameters).zip(given.split(',')) {
        *value = number(text, parameter, given.trim())?;
    }
    Ok(values)
}

fn number(text: &str, parameter: &Parameter, given: &str) -> Result<f64, OrderError> {
    let allowed = |value: &f64| {
        (parameter.least..=parameter.most).contains(value) && (!parameter.is_whole || value.fract() == 0.0)
    };
    given.parse().ok().filter(allowed).ok_or_else(|| OrderError::Parameter {
        text: text.to_owned(),
        letter: parameter.letter,
        value: given.to_owned(),
        summary: parameter.summary,
        least: parameter.least,
        most: parameter.most,
        whole: if parameter.is_whole { ", whole" } else { "" },
    })
}

/// A number between 0 and 10⁹ in millionths, so that choices do not depend on rounding.
pub(super) fn millionths(value: f64) -> u64 {
    (value * 1e6).round() as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    fn error(text: &str) -> String {
        built_in(text).expect_err("it is wrong").to_string()
    }

    #[test]
    fn text_gives_the_order_with_its_parameters() {
        assert_eq!(built_in("vr(0.2)"), built_in("vr"));
        assert_ne!(built_in("vr(0.3)"), built_in("vr"));
        assert_eq!(built_in(" vr ( 0.3 )".trim()), built_in("vr(0.3)"));
        assert_eq!(built_in("edf(100)"), built_in("edf(100, 5000)"));
        assert_eq!(built_in("scan-edf(100,5000,100)"), built_in("scan-edf(100)"));
    }

    #[test]
    fn invalid_order_text_is_rejected_with_what_is_allowed() {
        assert_eq!(error("sptg(2)"), "no order is called `sptg`; the nearest is `sptf`");
        assert_eq!(error("vr(0.2"), "order `vr(0.2`: write it as `vr(R)`");
        assert_eq!(error("vr(0.2)x"), "order `vr(0.2)x`: write it as `vr(R)`");
        assert_eq!(error("fcfs(1)"), "order `fcfs(1)`: 1 parameters where `fcfs` takes 0 at most");
        assert_eq!(
            error("vr(2)"),
            "order `vr(2)`: R is `2`; it is the reluctance to reverse, from SSTF's to LOOK's: 0 to 1"
        );
        assert_eq!(
            error("n-step(2.5)"),
            "order `n-step(2.5)`: N is `2.5`; it is the requests of a batch: 1 to 1024, whole"
        );
        for text in
            ["vr()", "vr(NaN)", "vr(inf)", "vr(-1)", "vr(0.2,)", "vr((0.2))", "vr(0,2,3)", "(", ")", "vr("]
        {
            assert!(!error(text).contains('\n'), "{text}");
        }
    }
}
