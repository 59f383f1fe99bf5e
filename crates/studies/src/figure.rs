//! What a study shows beside its rows: figures and tables as data. Whoever prints or draws them chooses how.

/// A part of a study's report about one question.
#[derive(Clone, Debug, Default)]
pub struct Section {
    /// Heading.
    pub title: String,
    /// Paragraphs below the heading.
    pub text: Vec<String>,
    /// Figures, in order.
    pub figures: Vec<Figure>,
    /// Tables, in order.
    pub tables: Vec<Table>,
}

/// A figure: lines over two axes.
#[derive(Clone, Debug, Default)]
pub struct Figure {
    /// What is shown.
    pub title: String,
    /// The axis across.
    pub x: Axis,
    /// The axis upwards.
    pub y: Axis,
    /// The lines, in the order of the legend.
    pub lines: Vec<Line>,
}

/// An axis of a figure.
#[derive(Clone, Debug, Default)]
pub struct Axis {
    /// What is measured, with its unit.
    pub label: String,
    /// Whether distances show ratios.
    pub log: bool,
    /// Where to put ticks; chosen by whoever draws when empty.
    pub ticks: Vec<f64>,
    /// What stands at 0, 1, 2 …, in place of numbers.
    pub names: Vec<String>,
}

impl Axis {
    /// A linear axis.
    pub fn linear(label: impl Into<String>) -> Axis {
        Axis { label: label.into(), ..Axis::default() }
    }

    /// An axis that shows ratios.
    pub fn log(label: impl Into<String>) -> Axis {
        Axis { label: label.into(), log: true, ..Axis::default() }
    }

    /// An axis of words, which stand at 0, 1, 2 …
    pub fn of_names(label: impl Into<String>, names: impl IntoIterator<Item = String>) -> Axis {
        Axis { names: names.into_iter().collect(), ..Axis::linear(label) }
    }

    /// The same axis with ticks at these places.
    pub fn with_ticks(mut self, ticks: impl IntoIterator<Item = f64>) -> Axis {
        self.ticks = ticks.into_iter().collect();
        self
    }
}

/// How a line of a figure is meant.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Look {
    /// Points of a function, joined.
    #[default]
    Curve,
    /// A curve of so many points that they are not marked.
    Dense,
    /// Points that do not follow from each other, such as published values.
    Marks,
    /// Bars over the words of an axis.
    Bars,
}

/// A named line of a figure.
#[derive(Clone, Debug, Default)]
pub struct Line {
    /// Its name in the legend.
    pub name: String,
    /// The points, by rising x.
    pub points: Vec<(f64, f64)>,
    /// How it is meant.
    pub look: Look,
    /// Lines of one family share a colour.
    pub family: usize,
    /// Whether it is dashed, to tell the second of a family.
    pub dashed: bool,
    /// How far each point may be off upwards and downwards; none are shown when empty.
    pub errors: Vec<f64>,
}

/// A table: words that name each row, then numbers.
#[derive(Clone, Debug, Default)]
pub struct Table {
    /// What is shown.
    pub title: String,
    /// Headings of the columns, with units.
    pub columns: Vec<String>,
    /// Columns, from the first, that hold words.
    pub words: usize,
    /// The rows, each as long as `columns`.
    pub rows: Vec<Vec<Cell>>,
}

impl Table {
    /// An empty table, the first column of which holds words.
    pub fn new<C: Into<String>>(title: impl Into<String>, columns: impl IntoIterator<Item = C>) -> Table {
        let columns = columns.into_iter().map(Into::into).collect();
        Table { title: title.into(), columns, words: 1, rows: Vec::new() }
    }

    /// Adds a row.
    pub fn row(&mut self, cells: impl IntoIterator<Item = Cell>) {
        let row: Vec<Cell> = cells.into_iter().collect();
        assert_eq!(row.len(), self.columns.len(), "a row has a cell for each column");
        self.rows.push(row);
    }
}

/// A cell of a table.
#[derive(Clone, Debug, PartialEq)]
pub enum Cell {
    /// Text.
    Word(String),
    /// A number, shown to four digits.
    Number(f64),
    /// Nothing to say.
    Empty,
}

impl From<&str> for Cell {
    fn from(word: &str) -> Cell {
        Cell::Word(word.to_string())
    }
}

impl From<String> for Cell {
    fn from(word: String) -> Cell {
        Cell::Word(word)
    }
}

impl From<f64> for Cell {
    fn from(number: f64) -> Cell {
        Cell::Number(number)
    }
}

impl From<Option<f64>> for Cell {
    fn from(number: Option<f64>) -> Cell {
        number.map_or(Cell::Empty, Cell::Number)
    }
}
