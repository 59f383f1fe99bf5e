//! `headstack top`: shows the activity of a storage node in the terminal.

mod rows;
mod screen;
mod text;

use crate::failure::Failure;
use crate::serve::state::StatePart;
use crate::service::interval;
use rows::Order;
use serde_json::Value;
use std::io::{IsTerminal, Write, stdin, stdout};
use std::time::Duration;
use ureq::Agent;

/// Show what a storage node does: its disks, and their streams.
///
/// Reads the metrics of `headstack serve --metrics ADDRESS`. On a terminal it updates the display each second until you press q:
/// s sorts the streams by the next column, r reverses the order, the arrow keys scroll. If the output is no terminal, it prints
/// once.
#[derive(clap::Args)]
pub(crate) struct Top {
    /// The address of the node's metrics: HOST:PORT.
    #[arg(value_name = "HOST:PORT")]
    address: String,
    /// Print once and end.
    #[arg(long)]
    once: bool,
    /// Time between two updates.
    #[arg(long, value_name = "TIME", default_value = "1s", value_parser = interval)]
    interval: Duration,
    /// The column by which streams are sorted.
    #[arg(long, value_enum, default_value_t = Order::Rate)]
    sort: Order,
}

impl Top {
    pub(crate) fn run(&self, out: &mut dyn Write) -> Result<(), Failure> {
        let node = Node::new(&self.address);
        if !has_port(&node.address) {
            return Err(Failure::Input(format!(
                "{}: no port: write HOST:PORT, as `headstack serve --metrics` prints it",
                node.address
            )));
        }
        let state = node.state().map_err(Failure::Input)?;
        if self.once || !stdout().is_terminal() || !stdin().is_terminal() {
            return Ok(text::print(StatePart(&state), self.sort, out)?);
        }
        screen::run(&node, state, self.interval, self.sort)
    }
}

/// Whether an address names a port.
fn has_port(address: &str) -> bool {
    address.rsplit_once(':').is_some_and(|(host, port)| {
        !host.is_empty() && (!host.contains(':') || host.ends_with(']')) && port.parse::<u16>().is_ok()
    })
}

struct Node {
    address: String,
    agent: Agent,
}

/// Timeout of a node's answer.
const PATIENCE: Duration = Duration::from_secs(5);

impl Node {
    fn new(address: &str) -> Node {
        let address = address.trim_start_matches("http://").trim_end_matches('/').to_string();
        let agent = Agent::config_builder().timeout_global(Some(PATIENCE)).build().into();
        Node { address, agent }
    }

    /// The node's present state.
    ///
    /// *Errors:* it does not answer, or is no node: one line.
    fn state(&self) -> Result<Value, String> {
        let at = |error: String| format!("{}: {error}", self.address);
        let answer = self.agent.get(format!("http://{}/json", self.address)).call();
        let text = answer.and_then(|mut answer| answer.body_mut().read_to_string());
        let text = text.map_err(|error| match error {
            ureq::Error::StatusCode(status) => {
                at(format!("no node answers there, but another server (status {status})"))
            }
            ureq::Error::Io(error) => at(format!("no node answers there: {error}")),
            error => at(format!("no node answers there: {error}")),
        })?;
        let no_node = |error: &str| at(format!("this is no figure of a storage node: {error}"));
        let state: Value = serde_json::from_str(&text).map_err(|error| no_node(&error.to_string()))?;
        if state["disk"].is_array() { Ok(state) } else { Err(no_node("missing field `disk`")) }
    }
}
