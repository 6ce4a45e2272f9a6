//! The folder in which the batch runs: the files of the example, and the places as a CSV file.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use milepost_core::dag::checked::Dag;
use milepost_core::dag::definition::Definition;
use serde_json::{Value, json};
use tempfile::TempDir;

use super::DAG;
use crate::places;
use crate::plan::Plan;

/// The example in `examples/settlement`, to which `data/settlement` is a link.
const FILES: [(&str, &str); 9] = [
    ("clean.sh", include_str!("../../data/settlement/clean.sh")),
    (COUNTRY, include_str!("../../data/settlement/country.sh")),
    ("join.sh", include_str!("../../data/settlement/join.sh")),
    ("json.sh", include_str!("../../data/settlement/json.sh")),
    (CONFIG, include_str!("../../data/settlement/milepost.toml")),
    ("report.sh", include_str!("../../data/settlement/report.sh")),
    (DEFINITION, include_str!("../../data/settlement/settlement.toml")),
    ("split.sh", include_str!("../../data/settlement/split.sh")),
    ("warn.sh", include_str!("../../data/settlement/warn.sh")),
];
const CONFIG: &str = "milepost.toml";
/// The program for one country.
const COUNTRY: &str = "country.sh";
/// Prepended to the program: until a process was killed, each run takes at least 0.5 s. The demo must observe a moment when some of the
/// countries are done, also on a machine that gives it no processor time for a while.
const TAKES_ITS_TIME: &str = "set -eu\n[ -e killed ] || sleep 0.5\n";
const DEFINITION: &str = "settlement.toml";
const CITIES: &str = "cities.csv";
/// The output folder, relative to this folder.
const INTO: &str = "out";

/// The temporary folder; it is deleted when this value is dropped.
pub(super) struct Folder(TempDir);

impl Folder {
    /// Creates the folder with the places of this plan.
    pub(super) fn make(plan: Plan) -> Result<Self> {
        let folder = TempDir::with_prefix("milepost-demo-").context("cannot create a temporary folder")?;
        let folder = Self(folder);
        folder.fill(plan).with_context(|| format!("cannot write to {}", folder.path().display()))?;
        Ok(folder)
    }

    fn fill(&self, plan: Plan) -> Result<()> {
        for (name, text) in FILES {
            let path = self.path().join(name);
            if name == COUNTRY {
                std::fs::write(&path, text.replacen("set -eu\n", TAKES_ITS_TIME, 1))?;
            } else {
                std::fs::write(&path, text)?;
            }
            make_executable(&path)?;
        }
        let mut csv = BufWriter::new(File::create(self.path().join(CITIES))?);
        places::write_spread(plan.places, &mut csv)?;
        Ok(csv.flush()?)
    }

    /// Removes the artificial delay of the programs.
    pub(super) fn hurry(&self) -> Result<()> {
        let path = self.path().join("killed");
        std::fs::write(&path, "").with_context(|| format!("cannot write {}", path.display()))
    }

    pub(super) fn path(&self) -> &Path {
        self.0.path()
    }

    /// Returns the DAG of the example under the demo's name, with its tasks in this queue.
    pub(super) fn dag(&self, queue: &str) -> Result<Dag> {
        let text = std::fs::read_to_string(self.path().join(DEFINITION))?;
        let mut definition: Definition = toml::from_str(&text)?;
        DAG.clone_into(&mut definition.name);
        for (_, task) in &mut definition.tasks {
            queue.clone_into(&mut task.queue);
        }
        Ok(Dag::check(definition)?)
    }

    /// Returns the input of the batch.
    pub(super) fn input(&self) -> Value {
        json!({ "file": CITIES, "into": INTO })
    }

    /// Returns the totals that the batch wrote, one line per country.
    pub(super) fn totals(&self) -> Result<String> {
        self.read("totals.csv")
    }

    fn read(&self, name: &str) -> Result<String> {
        let path: PathBuf = self.path().join(INTO).join(name);
        std::fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))
    }
}

#[cfg(unix)]
fn make_executable(path: &Path) -> std::io::Result<()> {
    use std::os::unix::fs::PermissionsExt;

    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o755))
}

#[cfg(not(unix))]
fn make_executable(_path: &Path) -> std::io::Result<()> {
    Ok(())
}
