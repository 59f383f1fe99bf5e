//! Tables, for the terminal and the page.

use comfy_table::{CellAlignment, ContentArrangement, LineStyle, TableStyle};

/// No frame: a line below the headings, and nothing else.
const STYLE: TableStyle = TableStyle::new().header_separator(LineStyle::none().fill('─'));

/// A table: a heading, columns, rows of text. The first column names the row; the others hold numbers.
#[derive(Clone, Debug, Default)]
pub(crate) struct Table {
    /// What is shown.
    pub title: String,
    /// Headings of the columns, with units.
    pub columns: Vec<String>,
    /// The rows, each as long as `columns`.
    pub rows: Vec<Vec<String>>,
    /// Columns, from the first, that hold words and lean left. The others hold numbers.
    pub words: usize,
}

impl Table {
    /// An empty table with these columns, the first of which holds words.
    pub(crate) fn new(title: &str, columns: &[&str]) -> Table {
        let columns = columns.iter().map(ToString::to_string).collect();
        Table { title: title.to_string(), columns, rows: Vec::new(), words: 1 }
    }

    /// Adds a row.
    pub(crate) fn row(&mut self, cells: impl IntoIterator<Item = String>) {
        let row: Vec<String> = cells.into_iter().collect();
        assert_eq!(row.len(), self.columns.len(), "a row has a cell for each column");
        self.rows.push(row);
    }

    /// Leaves a column out; its heading.
    pub(crate) fn remove_column(&mut self, index: usize) -> String {
        self.rows.iter_mut().for_each(|row| drop(row.remove(index)));
        self.columns.remove(index)
    }

    /// The table as aligned text, without its title.
    pub(crate) fn to_text(&self) -> String {
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
}
