//! `milepost batch define`.

use std::path::PathBuf;

use anyhow::Result;
use clap::Args;
use milepost_cli_support::operator::ReasonArgs;
use milepost_cli_support::output::{self, Outcome};
use milepost_cli_support::store::Schema;
use milepost_core::batch::listing::Defined;
use milepost_core::dag::checked::Dag;
use milepost_core::port::BatchStore;
use serde_json::json;

use super::file::{self, Faulty};
use super::words;
use crate::selection::Selection;

const EXAMPLES: &str = "\
A version is identified by its content; format and layout of the file do not
matter. Batches keep the version that they were started with; new batches get
the latest one. If one of several files has an error, none is stored.
docs/BATCHES.md describes definitions.

Exit status: 0 stored (with --check: valid), 2 a definition has errors.

Examples:
  milepost batch define settlement.toml
  milepost batch define dags/*.yaml
  milepost batch define settlement.toml --check";

#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct DefineArgs {
    /// Definitions: .toml, .yaml, .yml or .json, one DAG per file
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
    #[command(flatten)]
    reason: ReasonArgs,
    /// Only check the definitions; needs no store
    #[arg(long)]
    check: bool,
    /// Print one JSON array
    #[arg(long)]
    json: bool,
}

pub(super) async fn run(args: DefineArgs, selection: &Selection) -> Result<Outcome> {
    let Some(dags) = read(&args.files)? else { return Ok(Outcome::WrongUsage) };
    if args.check {
        tell_checked(&dags, args.json)?;
        return Ok(Outcome::Done);
    }
    let store = super::open(selection, Schema::MadeWhenEmpty).await?;
    define(&dags, args.json, args.reason.acting(store.as_ref())?.as_ref()).await?;
    Ok(Outcome::Done)
}

/// Reads the DAGs of all files; returns `None` if there are faults, which were reported.
fn read(files: &[PathBuf]) -> Result<Option<Vec<Dag>>> {
    let mut dags = Vec::new();
    for file in files {
        match file::read(file) {
            Ok(dag) => dags.push(dag),
            Err(error) => match error.downcast::<Faulty>() {
                Ok(faulty) => faulty.lines().for_each(output::fault),
                Err(error) => return Err(error),
            },
        }
    }
    Ok((dags.len() == files.len()).then_some(dags))
}

fn tell_checked(dags: &[Dag], json: bool) -> Result<()> {
    if json {
        let facts = |dag: &Dag| {
            json!({
                "dag": dag.definition().name,
                "version": dag.version(),
                "tasks": dag.graph().len(),
                "edges": dag.graph().edges(),
                "depth": dag.graph().depth(),
            })
        };
        return output::heard_or_not(output::json(&dags.iter().map(facts).collect::<Vec<_>>()));
    }
    for dag in dags {
        let graph = dag.graph();
        let (tasks, edges) = (words::tasks(graph.len() as u64), words::count(graph.edges() as u64));
        let (depth, version) = (graph.depth(), words::short(dag.version()));
        let name = &dag.definition().name;
        output::change(format_args!("{name}  {tasks}, {edges} edges, {depth} deep; version {version}"))?;
    }
    Ok(())
}

async fn define(dags: &[Dag], json: bool, store: &dyn BatchStore) -> Result<()> {
    let mut all = Vec::new();
    for dag in dags {
        let defined = store.define_dag(dag).await?;
        if !json {
            output::change(in_words(&defined))?;
        }
        all.push(defined);
    }
    if json { output::heard_or_not(output::json(&all)) } else { Ok(()) }
}

fn in_words(Defined { version, known }: &Defined) -> String {
    let news = if *known { "existed before and is now the latest" } else { "new" };
    let digits = words::short(version.version);
    format!("{}  version {} ({digits}), {news}", version.dag, version.number)
}
