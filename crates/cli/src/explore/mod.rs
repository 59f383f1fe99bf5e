//! `headstack explore`: a page in the browser that shows what the disks of a rig do with a load.

mod experiment;
mod running;

use crate::failure::Failure;
use crate::files::{self, NewFile};
use crate::interrupt::Interrupt;
use crate::rig;
use crate::service::endpoint::{Endpoint, Page};
use crate::sim::load::LoadArgs;
use crate::sim::setup::RigArgs;
use std::io::Write;
use std::path::PathBuf;
use std::thread;
use std::time::Duration;

/// Time between two checks for a signal: too short for a person to notice.
const LOOK: Duration = Duration::from_millis(100);

/// Show what the disks of a rig do with a load, on a page that runs the simulator in the browser.
///
/// The page shows platters, arms, queue, cache and the time split of each request, at any speed, and two orders side by side. It
/// loads nothing from a network; --save writes it to a file that opens without a server.
#[derive(clap::Args)]
pub(crate) struct Explore {
    /// A rig file, a shipped rig or a shipped drive; or, without a load, http://ADDRESS, the address of --metrics of a
    /// running `headstack emulate` or `serve`.
    #[arg(value_name = "RIG")]
    rig: String,
    /// A fio job file (.fio), a load file (.toml) or a trace in any format.
    #[arg(value_name = "LOAD")]
    load: Option<String>,
    #[command(flatten)]
    options: RigArgs,
    #[command(flatten)]
    load_options: LoadArgs,
    /// Show a second run of the same load next to the first, with this key of the rig changed: drive.order=sptf. May be repeated.
    #[arg(long, value_name = "KEY=VALUE")]
    against: Vec<String>,
    /// Write the page to a file and end.
    #[arg(long, value_name = "FILE.html")]
    save: Option<PathBuf>,
    /// Serve the page at this address. `:8080` is on this machine only; port 0 chooses a free one.
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:0", conflicts_with = "save")]
    listen: String,
}

impl Explore {
    pub(crate) fn run(&self, out: &mut dyn Write) -> Result<(), Failure> {
        let load = match (&self.load, self.rig.starts_with("http://")) {
            (None, true) => return running::find(&self.rig, out),
            (Some(load), false) => load,
            (None, false) => {
                return Err(Failure::Input("LOAD: missing; headstack explore RIG LOAD".to_string()));
            }
            (Some(load), true) => {
                return Err(Failure::Input(format!(
                    "{load}: running disks have their own load; leave it out"
                )));
            }
        };
        let outputs = [("--save", self.save.as_deref())];
        files::check_apart(&rig::load::read_files(&self.rig, load), &outputs)?;
        let file = NewFile::if_named(self.save.as_deref())?;
        let page = self.page(load)?;
        match file {
            Some(file) => file.fill(page.as_bytes()),
            None => self.serve(page, out),
        }
    }

    /// The page with the experiment of these arguments.
    fn page(&self, load: &str) -> Result<String, Failure> {
        let mut rig = rig::load::load_before(&self.rig, load)?;
        self.options.apply(&mut rig)?;
        let mut experiment = experiment::collect(&rig, load, &self.load_options, self.options.seed)?;
        experiment.rig.clone_from(&self.rig);
        experiment.sides = experiment::sides(&rig, &self.against)?;
        let json = serde_json::to_string(&experiment).expect("an experiment is JSON");
        let title = format!("{} with {}", self.rig, experiment::file_name(load));
        headstack_explorer::page(&title, &json, env!("CARGO_PKG_VERSION")).map_err(Failure::input)
    }

    /// Serves the page until a signal comes.
    fn serve(&self, page: String, out: &mut dyn Write) -> Result<(), Failure> {
        let interrupt = Interrupt::watch()?;
        let html = Page {
            path: "/",
            kind: "text/html; charset=utf-8",
            text: Box::new(move || Ok(page.clone())),
            other: None,
        };
        let endpoint = Endpoint::serving("--listen", &self.listen, vec![html])?;
        writeln!(out, "http://{}/ shows {}; Ctrl-C ends it", endpoint.address(), self.rig)?;
        out.flush()?;
        while interrupt.received().is_none() {
            #[allow(clippy::disallowed_methods, reason = "the command waits for a signal")]
            thread::sleep(LOOK);
        }
        Ok(())
    }
}
