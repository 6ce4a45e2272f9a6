//! `[batch.NAME]`: DAGs that are defined in separate files.

use std::path::Path;

use anyhow::{Context, Result, bail};
use milepost_core::dag::checked::Dag;
use schemars::JsonSchema;
use serde::Deserialize;

use super::document::{Entry, Node};
use super::fault::Faults;
use crate::batch::file::{self, Faulty};

/// A DAG of jobs, of which batches are started (docs/BATCHES.md). Workers store its definition when they start; existing
/// versions stay for the batches that have them.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct BatchEntry {
    /// The file with its definition, relative to the folder of this file: `.toml`, `.yaml`, `.yml` or `.json`. It must
    /// contain the name of this section.
    file: String,
}

impl BatchEntry {
    /// Reads the DAG from its file; the path is relative to `folder`.
    pub(crate) fn dag(&self, name: &str, folder: &Path) -> Result<Dag> {
        let dag = file::read(&folder.join(&self.file)).with_context(|| format!("the DAG {name}"))?;
        match dag.definition().name.as_str() {
            same if same == name => Ok(dag),
            other => bail!(
                "the DAG in {} has the name {other:?}, but this section has the name {name:?}",
                self.file
            ),
        }
    }
}

/// Checks the definitions. `bulks`: the bulk jobs of the file, which no task may have as its kind.
pub(super) fn check(batches: Option<&Node>, bulks: Option<&Node>, folder: &Path, faults: &mut Faults) {
    let bulks: Vec<&str> =
        bulks.map(Node::entries).unwrap_or_default().iter().map(|bulk| &*bulk.key).collect();
    for Entry { key: name, node, .. } in batches.map(Node::entries).unwrap_or_default() {
        let Some(file) = node.get("file") else { continue };
        let Some(path) = file.text() else { continue };
        let at = file.span.start;
        match (BatchEntry { file: path.to_owned() }).dag(name, folder) {
            Ok(dag) => {
                if let Err(invalid) = dag.check_kinds(bulks.iter().copied()) {
                    faults.add(at, invalid.to_string(), "correct the definition in this file");
                }
            }
            Err(error) => match error.downcast_ref::<Faulty>() {
                Some(faulty) => faulty.lines().for_each(|line| {
                    faults.add(at, line, "`milepost batch define --check FILE` checks the definition alone");
                }),
                None => {
                    faults.add(at, format!("{error:#}"), "give the file of a definition (docs/BATCHES.md)");
                }
            },
        }
    }
}
