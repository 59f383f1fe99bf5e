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
        frame.render_widget(widget(&rows::disks(state), None, table.width), table);
        let lines: Vec<Line<'_>> = state.list("disk").map(|disk| rows::tuning(disk).into()).collect();
        frame.render_widget(Paragraph::new(lines).dim(), tuning);
        let rows = rows::streams(state, self.order, self.is_turned);
        let shown = widget(&rows, Some(self.order.name()), streams.width);
        frame.render_stateful_widget(shown, streams, &mut self.place);
        let help = format!("q quit   s sort (by {})   r turn round   up, down", self.order.name());
        let foot_line = match &self.trouble {
            Some(trouble) => Line::from(trouble.as_str()).red(),
            None => Line::from(help).dim(),
        };
        frame.render_widget(foot_line, foot);
    }
}

/// Columns between two of a table.
const SPACING: u16 = 1;

/// The columns of a table that fit into a width, each with its own: the first, the one that it is sorted by, and as many others from the
/// left.
fn fitting(table: &Rows, sorted: Option<&str>, width: u16) -> Vec<(usize, u16)> {
    let of = |(at, name): (usize, &String)| {
        let cells = table.rows.iter().map(|row| &row[at]).chain([name]);
        let longest = cells.map(|text| text.chars().count()).max().unwrap_or_default();
        (at, u16::try_from(longest).unwrap_or(u16::MAX))
    };
    let all: Vec<(usize, u16)> = table.columns.iter().enumerate().map(of).collect();
    let is_needed = |at: usize| at == 0 || sorted == Some(table.columns[at].as_str());
    let taken = |own: u16| own.saturating_add(SPACING);
    let needed = all.iter().filter(|(at, _)| is_needed(*at)).map(|(_, own)| taken(*own));
    let mut left = taken(width).saturating_sub(needed.fold(0, u16::saturating_add));
    let mut has_room = true;
    let fits = |(at, own): &(usize, u16)| {
        if is_needed(*at) {
            return true;
        }
        has_room &= taken(*own) <= left;
        left = left.saturating_sub(if has_room { taken(*own) } else { 0 });
        has_room
    };
    all.into_iter().filter(fits).collect()
}

/// A table for the terminal, without the columns for which there is no room; the column that it is sorted by is underlined.
fn widget<'a>(table: &Rows, sorted: Option<&str>, width: u16) -> Table<'a> {
    let columns = fitting(table, sorted, width);
    let cell = |at: usize, text: &str| {
        let text = Text::from(text.to_string());
        Cell::from(if at < table.words { text } else { text.right_aligned() })
    };
    let head = columns.iter().map(|(at, _)| {
        let name = &table.columns[*at];
        let is_sorted = sorted == Some(name.as_str());
        cell(*at, name).style(if is_sorted { Style::new().underlined() } else { Style::new() })
    });
    let body = table.rows.iter().map(|row| Row::new(columns.iter().map(|(at, _)| cell(*at, &row[*at]))));
    let widths: Vec<Constraint> = columns.iter().map(|(_, own)| Constraint::Length(*own)).collect();
    Table::new(body, widths)
        .header(Row::new(head).reversed())
        .row_highlight_style(Style::new().bold())
        .column_spacing(SPACING)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_without_room_are_left_out_and_the_sorted_one_stays() {
        let mut table = Rows::new("", &["disk", "streams", "turn", "wait", "hit%"]);
        table.row(["video-0", "1,024", "12", "3", "100"].map(str::to_string));
        let kept = |width, sorted| fitting(&table, sorted, width);
        let all = vec![(0, 7), (1, 7), (2, 4), (3, 4), (4, 4)];
        assert_eq!(kept(30, None), all);
        assert_eq!(kept(29, None), all[..4]);
        assert_eq!(kept(20, None), all[..3]);
        assert_eq!(kept(20, Some("hit%")), [(0, 7), (1, 7), (4, 4)]);
        assert_eq!(kept(3, None), [(0, 7)]);
    }
}
