//! `milepost batch graph`: draws a DAG, or a batch in the colours of its states.

mod dot;
mod drawing;
mod labels;
mod list;
mod svg;

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use clap::{Args, ValueEnum};
use milepost_cli_support::output::{self, Outcome};
use milepost_cli_support::store::Schema;
use milepost_core::batch::listing::TaskFilter;
use milepost_core::dag::checked::Dag;
use milepost_core::dag::state::TaskState;
use milepost_core::ident::BatchId;
use milepost_core::port::BatchStore;
use milepost_layout as layout;

use super::file;
use super::find::{self, WhichArgs};
use crate::selection::Selection;

const EXAMPLES: &str = "\
As text, the graph is drawn if it fits in 80 columns; otherwise the tasks are
listed layer by layer, each with its predecessors, and omitted tasks are
counted. SVG is for browsers, in light and dark mode; DOT is for Graphviz.

Examples:
  milepost batch graph settlement
  milepost batch graph settlement.toml
  milepost batch graph settlement --key 2026-11-01
  milepost batch graph 0199c6f0-7a1e-7c3b-9d43-0d5f5e0a1b2c --format svg --out now.svg
  milepost batch graph settlement --format dot | dot -Tpdf > settlement.pdf";

#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct GraphArgs {
    /// A DAG's name, a batch's full id, or a file with a definition
    #[arg(value_name = "DAG|BATCH|FILE")]
    what: String,
    /// The batch of the DAG that has this key
    #[arg(long)]
    key: Option<String>,
    /// The output format
    #[arg(long, value_enum, default_value_t = Format::Text)]
    format: Format,
    /// Write it to this file instead of standard output
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Format {
    /// For a terminal
    Text,
    /// For a browser
    Svg,
    /// For Graphviz
    Dot,
}

/// The drawn graph.
struct Scene {
    dag: Dag,
    /// The state of each task by number, if this is a batch.
    states: Option<Vec<TaskState>>,
}

impl Scene {
    /// Returns the state of a task, if this is a batch.
    fn state(&self, task: u32) -> Option<TaskState> {
        self.states.as_ref()?.get(task as usize).copied()
    }

    /// Draws the graph as text, or lists it layer by layer if the drawing would be too large.
    fn text(&self) -> String {
        drawing::draw(self).unwrap_or_else(|| list::list(self))
    }

    /// Draws the graph in a format.
    fn draw(&self, format: Format) -> Result<String> {
        Ok(match format {
            Format::Text => self.text(),
            Format::Dot => dot::draw(self),
            Format::Svg => svg::draw(self)?,
        })
    }
}

pub(super) async fn run(args: &GraphArgs, selection: &Selection) -> Result<Outcome> {
    let scene = if args.key.is_none() && file::is_named(&args.what) {
        Scene { dag: file::read(Path::new(&args.what))?, states: None }
    } else {
        let store = super::open(selection, Schema::MustFit).await?;
        scene(args, store.as_ref()).await?
    };
    let drawn = scene.draw(args.format)?;
    match &args.out {
        Some(path) => {
            std::fs::write(path, drawn).with_context(|| format!("cannot write {}", path.display()))?;
            output::note(format_args!("wrote {}", path.display()));
        }
        None => output::line(drawn.trim_end())?,
    }
    Ok(Outcome::Done)
}

async fn scene(args: &GraphArgs, store: &dyn BatchStore) -> Result<Scene> {
    if args.key.is_none() && args.what.parse::<BatchId>().is_err() {
        let latest = find::dag(&args.what, store).await?;
        let (_, definition) = store.dag(&latest.dag, Some(latest.version)).await?;
        return Ok(Scene { dag: Dag::check(definition)?, states: None });
    }
    let which = WhichArgs::of(&args.what, args.key.as_deref());
    let subject = which.subject(store).await?;
    let id = subject.row.id;
    let dag = subject.dag.with_context(|| {
        format!(
            "batch {id} consists of the items of a list, which have no edges; `milepost batch show {id}` lists them"
        )
    })?;
    let mut states = vec![TaskState::Waiting; dag.graph().len()];
    for task in find::all_tasks(id, TaskFilter::default(), store).await? {
        if let Some(state) = states.get_mut(task.task as usize) {
            *state = task.state;
        }
    }
    Ok(Scene { dag, states: Some(states) })
}

#[cfg(test)]
mod tests;
