//! `milepost init`: creates a project folder that is ready to run.

use std::fs::{self, OpenOptions};
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};
use clap::Args;
use milepost_cli_support::output::{self, Outcome};
use milepost_cli_support::store::{self, StoreAddress};

/// The files of a project: name, permissions, content. The configuration is likely to contain secrets later.
const FILES: [(&str, u32, &str); 3] = [
    (CONFIGURATION, 0o600, include_str!("../data/project/milepost.toml")),
    ("hello.sh", 0o755, include_str!("../data/project/hello.sh")),
    (".gitignore", 0o644, include_str!("../data/project/gitignore")),
];
const CONFIGURATION: &str = "milepost.toml";
/// The store of a project, as in its configuration.
const STORE: &str = "milepost.db";

pub(crate) const EXAMPLES: &str = "\
The folder gets a configuration (milepost.toml), a program that runs jobs of the
kind \"hello\" (hello.sh), and a store (milepost.db). Existing files are not
changed.

Examples:
  milepost init shop
  cd shop
  milepost enqueue hello --payload '{\"name\": \"Ada\"}'
  milepost work";

/// Where to create the project.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct InitArgs {
    /// The folder, which is created if it does not exist
    #[arg(default_value = ".")]
    folder: PathBuf,
}

pub(crate) async fn run(args: InitArgs) -> Result<Outcome> {
    let folder = &args.folder;
    fs::create_dir_all(folder).with_context(|| format!("cannot create the folder {}", folder.display()))?;
    for (name, ..) in FILES {
        let path = folder.join(name);
        let is_there = path.symlink_metadata().is_ok();
        ensure!(
            !is_there,
            "{} exists already, and nothing was changed; give another folder: milepost init FOLDER",
            path.display()
        );
    }
    for (name, mode, content) in FILES {
        create(&folder.join(name), mode, content)?;
    }
    store::migrate(&StoreAddress::Sqlite(folder.join(STORE))).await?;
    output::note(format_args!("{}", next_steps(folder)));
    Ok(Outcome::Done)
}

fn create(path: &Path, mode: u32, content: &str) -> Result<()> {
    let file = OpenOptions::new().write(true).create_new(true).mode(mode).open(path);
    file.and_then(|mut file| file.write_all(content.as_bytes()))
        .with_context(|| format!("cannot write {}", path.display()))
}

fn next_steps(folder: &Path) -> String {
    let names: Vec<&str> = FILES.iter().map(|(name, ..)| *name).chain([STORE]).collect();
    let change =
        if folder == Path::new(".") { String::new() } else { format!("  cd {}\n", folder.display()) };
    format!(
        "created {} in {}; continue with\n{change}  \
         milepost enqueue hello --payload '{{\"name\": \"Ada\"}}'\n  \
         milepost work     # runs jobs until Ctrl+C\n  \
         milepost serve    # does the same, and shows the console at http://127.0.0.1:7070",
        names.join(", "),
        folder.display()
    )
}
