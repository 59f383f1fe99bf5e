//! A node on the terminal, updated regularly.

use super::Node;
use super::rows::{self, Order};
use crate::failure::Failure;
use crate::report::Table as Rows;
use crate::serve::state::StatePart;
use ratatui::crossterm::event::{self, Event, KeyCode, KeyEvent, KeyEventKind, KeyModifiers};
use ratatui::layout::{Constraint, Layout};
use ratatui::style::{Style, Stylize};
use ratatui::text::{Line, Text};
use ratatui::widgets::{Cell, Paragraph, Row, Table, TableState};
use ratatui::{DefaultTerminal, Frame};
use serde_json::Value;
use std::io;
use std::time::{Duration, Instant};

fn now() -> Instant {
    #[allow(clippy::disallowed_methods, reason = "people look by the machine's clock")]
    Instant::now()
}

/// Shows a node until the user quits.
pub(super) fn run(node: &Node, state: Value, every: Duration, order: Order) -> Result<(), Failure> {
    let mut screen = Screen {
        address: node.address.clone(),
        state,
        trouble: None,
        order,
        is_turned: false,
        place: TableState::default(),
    };
    let mut terminal = ratatui::try_init().map_err(Failure::Output)?;
    let shown = screen.show(&mut terminal, node, every);
    ratatui::restore();
    shown.map_err(Failure::Output)
}

struct Screen {
    address: String,
    state: Value,
    /// The reason why the last update failed, if it did.
    trouble: Option<String>,
    order: Order,
    is_turned: bool,
    place: TableState,
}

impl Screen {
    fn show(&mut self, terminal: &mut DefaultTerminal, node: &Node, every: Duration) -> io::Result<()> {
        let mut due = now() + every;
        loop {
            terminal.draw(|frame| self.draw(frame))?;
            if event::poll(due.saturating_duration_since(now()))? {
                match event::read()? {
                    Event::Key(key) if key.kind == KeyEventKind::Press && self.is_last(key) => return Ok(()),
                    _ => continue,
                }
            }
            match node.state() {
                Ok(state) => (self.state, self.trouble) = (state, None),
                Err(error) => self.trouble = Some(error),
            }
            due = now() + every;
        }
    }

    /// Handles a key; returns whether to quit.
    fn is_last(&mut self, key: KeyEvent) -> bool {
        match key.code {
            KeyCode::Char('q') | KeyCode::Esc => return true,
            KeyCode::Char('c') if key.modifiers.contains(KeyModifiers::CONTROL) => return true,
            KeyCode::Char('s') => self.order = self.order.next(),
            KeyCode::Char('r') => self.is_turned = !self.is_turned,
            KeyCode::Down => self.place.scroll_down_by(1),
            KeyCode::Up => self.place.scroll_up_by(1),
            KeyCode::PageDown => self.place.scroll_down_by(20),
            KeyCode::PageUp => self.place.scroll_up_by(20),
            KeyCode::Home => self.place.select_first(),
            KeyCode::End => self.place.select_last(),
            _ => {}
        }
        false
    }

    fn draw(&mut self, frame: &mut Frame<'_>) {
        let state = StatePart(&self.state);
        let disks = state.list("disk").count() as u16;
        let [title, table, tuning, streams, foot] = Layout::vertical([
            Constraint::Length(2),
            Constraint::Length(disks + 1),
            Constraint::Length(disks + 1),
            Constraint::Min(2),
            Constraint::Length(1),
        ])
        .areas(frame.area());
        frame.render_widget(Line::from(rows::title(&self.address, state)).bold(), title);
        frame.render_widget(widget(&rows::disks(state), None), table);
        let lines: Vec<Line<'_>> = state.list("disk").map(|disk| rows::tuning(disk).into()).collect();
        frame.render_widget(Paragraph::new(lines).dim(), tuning);
        let rows = rows::streams(state, self.order, self.is_turned);
        frame.render_stateful_widget(widget(&rows, Some(self.order.name())), streams, &mut self.place);
        let help = format!("q quit   s sort (by {})   r turn round   up, down", self.order.name());
        let foot_line = match &self.trouble {
            Some(trouble) => Line::from(trouble.as_str()).red(),
            None => Line::from(help).dim(),
        };
        frame.render_widget(foot_line, foot);
    }
}

/// A table for the terminal; the column that it is sorted by is underlined.
fn widget<'a>(table: &Rows, sorted: Option<&str>) -> Table<'a> {
    let cell = |at: usize, text: &str| {
        let text = Text::from(text.to_string());
        Cell::from(if at < table.words { text } else { text.right_aligned() })
    };
    let head = table.columns.iter().enumerate().map(|(at, name)| {
        let is_sorted = sorted == Some(name.as_str());
        cell(at, name).style(if is_sorted { Style::new().underlined() } else { Style::new() })
    });
    let body = table.rows.iter().map(|row| Row::new(row.iter().enumerate().map(|(at, text)| cell(at, text))));
    let width = |at: usize, name: &String| {
        let cells = table.rows.iter().map(|row| &row[at]).chain([name]);
        Constraint::Length(cells.map(|text| text.chars().count() as u16).max().unwrap_or_default())
    };
    let widths = table.columns.iter().enumerate().map(|(at, name)| width(at, name));
    Table::new(body, widths.collect::<Vec<_>>())
        .header(Row::new(head).reversed())
        .row_highlight_style(Style::new().bold())
        .column_spacing(1)
}
