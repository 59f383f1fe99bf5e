//! Reports: a plain data model, shown as one self-contained HTML file (charts and tables) or as text (tables).
//!
//! `demo`, `reproduce`, `validate --report` and others fill the same [`Report`]; none of them knows how it is drawn.

mod figure;
mod page;
mod table;

pub(crate) use page::to_html;
pub(crate) use table::Table;

/// A report: what it is about, and its sections.
#[derive(Clone, Debug, Default)]
pub(crate) struct Report {
    /// The heading of the page.
    pub title: String,
    /// Paragraphs below the heading.
    pub text: Vec<String>,
    /// The sections, in order.
    pub sections: Vec<Section>,
}

/// A part of a report about one question.
#[derive(Clone, Debug, Default)]
pub(crate) struct Section {
    /// Heading.
    pub title: String,
    /// Paragraphs below the heading.
    pub text: Vec<String>,
    /// Charts, in order.
    pub charts: Vec<Chart>,
    /// Tables, in order, below the charts.
    pub tables: Vec<Table>,
}

/// A chart of series over two axes.
#[derive(Clone, Debug)]
pub(crate) struct Chart {
    /// What is shown.
    pub title: String,
    /// The axis across.
    pub x: Axis,
    /// The axis upwards.
    pub y: Axis,
    /// The series, in the order of the legend.
    pub series: Vec<Series>,
}

/// An axis.
#[derive(Clone, Debug, Default)]
pub(crate) struct Axis {
    /// What is measured, with its unit.
    pub label: String,
    /// Whether distances show ratios.
    pub log: bool,
    /// Where to put ticks; chosen by the page when empty.
    pub ticks: Vec<f64>,
    /// What stands at 0, 1, 2 …, in place of numbers.
    pub names: Vec<String>,
}

impl Axis {
    /// A linear axis.
    pub(crate) fn linear(label: &str) -> Axis {
        Axis { label: label.to_string(), ..Axis::default() }
    }

    /// A logarithmic axis.
    pub(crate) fn log(label: &str) -> Axis {
        Axis { label: label.to_string(), log: true, ..Axis::default() }
    }

    /// An axis of words, which stand at 0, 1, 2 …
    pub(crate) fn of_names(label: &str, names: impl IntoIterator<Item = String>) -> Axis {
        Axis { names: names.into_iter().collect(), ..Axis::linear(label) }
    }

    /// The same axis with ticks at these places.
    pub(crate) fn with_ticks(mut self, ticks: impl IntoIterator<Item = f64>) -> Axis {
        self.ticks = ticks.into_iter().collect();
        self
    }
}

/// How a series is drawn.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Draw {
    /// Marked points joined by a line.
    #[default]
    Points,
    /// A line without marks.
    Line,
    /// A line that keeps its value until the next point.
    Steps,
    /// Small marks without a line, for many points that do not follow from each other.
    Dots,
    /// Marks without a line.
    Marks,
    /// Bars, stacked where several series have one at a place.
    Bars,
}

/// A named series of points.
#[derive(Clone, Debug, Default)]
pub(crate) struct Series {
    /// Its name in the legend.
    pub name: String,
    /// The points, by rising x.
    pub points: Vec<(f64, f64)>,
    /// How it is drawn.
    pub draw: Draw,
    /// Which colour of the page's palette; series of one family share it.
    pub hue: usize,
    /// Whether the line is dashed, to tell the second of a family.
    pub dashed: bool,
    /// Whether it is drawn only once its name in the legend is clicked.
    pub hidden: bool,
    /// How far each point may be off upwards and downwards; nothing is drawn when empty.
    pub errors: Vec<f64>,
}

#[cfg(test)]
mod tests;
