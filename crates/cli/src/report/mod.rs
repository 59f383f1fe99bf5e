//! Reports as self-contained HTML files. Commands fill a [`Report`]; this module draws it.

mod chart;
mod distributions;
mod page;

pub(crate) use distributions::distributions;
pub(crate) use headstack::report::{Axis, Chart, Draw, Report, Section, Series, Table};
pub(crate) use page::to_html;

#[cfg(test)]
mod tests;
