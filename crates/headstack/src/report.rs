//! A report as data: what studies and commands show, in charts and tables. The caller chooses how to print or draw it.

use crate::numbers::significant;
use comfy_table::{CellAlignment, ContentArrangement, LineStyle, TableStyle};

/// A report: its subject, and its sections.
#[derive(Clone, Debug, Default)]
pub struct Report {
    /// The heading of the page.
    pub title: String,
    /// Paragraphs below the heading.
    pub text: Vec<String>,
    /// The sections, in order.
    pub sections: Vec<Section>,
}

/// A part of a report about one question.
#[derive(Clone, Debug, Default)]
pub struct Section {
    /// Heading.
    pub title: String,
    /// Paragraphs below the heading.
    pub text: Vec<String>,
    /// Charts, in order.
    pub charts: Vec<Chart>,
    /// Tables, in order, below the charts.
    pub tables: Vec<Table>,
}

impl Section {
    /// A section without text, charts and tables.
    pub fn new(title: impl Into<String>) -> Section {
        Section { title: title.into(), ..Section::default() }
    }

    /// The section with one more paragraph.
    pub fn with_text(self, paragraph: impl Into<String>) -> Section {
        self.with_texts([paragraph])
    }

    /// The section with more paragraphs.
    pub fn with_texts(mut self, paragraphs: impl IntoIterator<Item = impl Into<String>>) -> Section {
        self.text.extend(paragraphs.into_iter().map(Into::into));
        self
    }

    /// The section with one more chart.
    pub fn with_chart(self, chart: Chart) -> Section {
        self.with_charts([chart])
    }

    /// The section with more charts.
    pub fn with_charts(mut self, charts: impl IntoIterator<Item = Chart>) -> Section {
        self.charts.extend(charts);
        self
    }

    /// The section with one more table.
    pub fn with_table(self, table: Table) -> Section {
        self.with_tables([table])
    }

    /// The section with more tables.
    pub fn with_tables(mut self, tables: impl IntoIterator<Item = Table>) -> Section {
        self.tables.extend(tables);
        self
    }
}

/// A chart of series over two axes.
#[derive(Clone, Debug)]
pub struct Chart {
    /// What is shown.
    pub title: String,
    /// The horizontal axis.
    pub x: Axis,
    /// The vertical axis.
    pub y: Axis,
    /// The series, in the order of the legend.
    pub series: Vec<Series>,
}

impl Chart {
    /// A chart of these series.
    pub fn new(
        title: impl Into<String>,
        x: Axis,
        y: Axis,
        series: impl IntoIterator<Item = Series>,
    ) -> Chart {
        Chart { title: title.into(), x, y, series: series.into_iter().collect() }
    }
}

/// An axis.
#[derive(Clone, Debug, Default)]
pub struct Axis {
    /// What is measured, with its unit.
    pub label: String,
    /// Whether distances show ratios.
    pub log: bool,
    /// The values with a tick; empty where the page chooses them.
    pub ticks: Vec<f64>,
    /// The words at 0, 1, 2 …, in place of numbers.
    pub names: Vec<String>,
}

impl Axis {
    /// A linear axis.
    pub fn linear(label: impl Into<String>) -> Axis {
        Axis { label: label.into(), ..Axis::default() }
    }

    /// A logarithmic axis.
    pub fn log(label: impl Into<String>) -> Axis {
        Axis { log: true, ..Axis::linear(label) }
    }

    /// An axis of words at 0, 1, 2 …
    pub fn of_names(label: impl Into<String>, names: impl IntoIterator<Item = String>) -> Axis {
        Axis { names: names.into_iter().collect(), ..Axis::linear(label) }
    }

    /// The same axis with ticks at these values.
    pub fn with_ticks(self, ticks: impl IntoIterator<Item = f64>) -> Axis {
        Axis { ticks: ticks.into_iter().collect(), ..self }
    }
}

/// How a series is drawn.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Draw {
    /// Marked points joined by a line.
    #[default]
    Points,
    /// A line without marks, for many points.
    Line,
    /// A line that keeps its value until the next point.
    Steps,
    /// Small marks without a line, for many independent points.
    Dots,
    /// Marks without a line, for points that do not follow from each other, such as published values.
    Marks,
    /// Bars, stacked where several series have one at a place.
    Bars,
}

/// A named series of points.
#[derive(Clone, Debug, Default)]
pub struct Series {
    /// Its name in the legend.
    pub name: String,
    /// The points, by rising x.
    pub points: Vec<(f64, f64)>,
    /// How it is drawn.
    pub draw: Draw,
    /// Index of a colour in the page's palette; series of one family share it.
    pub hue: usize,
    /// Whether the line is dashed, to tell the second of a family.
    pub dashed: bool,
    /// Whether it is drawn only once its name in the legend is clicked.
    pub hidden: bool,
    /// Error bars: the possible error of each point upwards and downwards; nothing is drawn when empty.
    pub errors: Vec<f64>,
}

impl Series {
    /// Marked points joined by a solid line.
    pub fn new(name: impl Into<String>, hue: usize, points: impl IntoIterator<Item = (f64, f64)>) -> Series {
        Series { name: name.into(), hue, points: points.into_iter().collect(), ..Series::default() }
    }

    /// The same points, drawn in this way.
    pub fn with_draw(self, draw: Draw) -> Series {
        Series { draw, ..self }
    }

    /// The same points, with a dashed line or a solid one.
    pub fn with_dashes(self, dashed: bool) -> Series {
        Series { dashed, ..self }
    }

    /// The same points with error bars.
    pub fn with_errors(self, errors: impl IntoIterator<Item = f64>) -> Series {
        Series { errors: errors.into_iter().collect(), ..self }
    }

    /// The same points, hidden until the name in the legend is clicked, or shown.
    pub fn hidden_if(self, hidden: bool) -> Series {
        Series { hidden, ..self }
    }
}

/// A table: words that name each row, then numbers.
#[derive(Clone, Debug, Default)]
pub struct Table {
    /// What is shown.
    pub title: String,
    /// Headings of the columns, with units.
    pub columns: Vec<String>,
    /// The rows, each as long as `columns`.
    pub rows: Vec<Vec<String>>,
    /// Number of columns, from the first, that have words and are aligned to the left. The others have numbers.
    pub words: usize,
}

/// The text of a cell. A number has four significant digits; an absent one leaves the cell empty.
#[derive(Clone, Debug, PartialEq)]
pub struct Cell(String);

impl From<&str> for Cell {
    fn from(word: &str) -> Cell {
        Cell(word.to_string())
    }
}

impl From<String> for Cell {
    fn from(word: String) -> Cell {
        Cell(word)
    }
}

impl From<f64> for Cell {
    fn from(number: f64) -> Cell {
        Cell(significant(number, 4))
    }
}

impl From<Option<f64>> for Cell {
    fn from(number: Option<f64>) -> Cell {
        number.map_or(Cell(String::new()), Cell::from)
    }
}

/// No frame: a line below the headings, and nothing else.
const STYLE: TableStyle = TableStyle::new().header_separator(LineStyle::none().fill('─'));

impl Table {
    /// An empty table with these columns, the first of which has words.
    pub fn new(title: impl Into<String>, columns: impl IntoIterator<Item: AsRef<str>>) -> Table {
        let columns = columns.into_iter().map(|column| column.as_ref().to_string()).collect();
        Table { title: title.into(), columns, words: 1, rows: Vec::new() }
    }

    /// The table with words in this number of columns.
    pub fn with_words(self, words: usize) -> Table {
        Table { words, ..self }
    }

    /// Adds a row.
    pub fn row(&mut self, cells: impl IntoIterator<Item = impl Into<Cell>>) {
        let row: Vec<String> = cells.into_iter().map(|cell| cell.into().0).collect();
        assert_eq!(row.len(), self.columns.len(), "a row has a cell for each column");
        self.rows.push(row);
    }

    /// Adds a row of words and numbers.
    pub fn named_row(
        &mut self,
        words: impl IntoIterator<Item = impl Into<Cell>>,
        numbers: impl IntoIterator<Item = impl Into<Cell>>,
    ) {
        let numbers = numbers.into_iter().map(Into::into);
        self.row(words.into_iter().map(Into::into).chain(numbers));
    }

    /// Removes a column, and returns its heading.
    pub fn remove_column(&mut self, index: usize) -> String {
        self.rows.iter_mut().for_each(|row| drop(row.remove(index)));
        self.columns.remove(index)
    }

    /// The table as aligned text, without its title.
    pub fn to_text(&self) -> String {
        let mut table = comfy_table::Table::new();
        table.load_style(STYLE).set_content_arrangement(ContentArrangement::Disabled);
        table.set_header(&self.columns).add_rows(&self.rows);
        let last = self.columns.len() - 1;
        for (index, column) in table.column_iter_mut().enumerate() {
            let left = index < self.words;
            column.set_cell_alignment(if left { CellAlignment::Left } else { CellAlignment::Right });
            column.set_padding((0, if index < last { 2 } else { 0 }));
        }
        table.lines().map(|line| format!("{}\n", line.trim_end())).collect()
    }

    /// The table in Markdown, without its title.
    pub fn to_markdown(&self) -> String {
        let cell = |text: &String| if text.is_empty() { " |".to_string() } else { format!(" {text} |") };
        let line = |cells: &[String]| format!("|{}\n", cells.iter().map(cell).collect::<String>());
        let rule = format!("|{}\n", "---|".repeat(self.columns.len()));
        [line(&self.columns), rule].into_iter().chain(self.rows.iter().map(|row| line(row))).collect()
    }
}
