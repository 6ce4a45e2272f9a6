//! Staging the rows of a file as targets of a run.

use std::path::{Path, PathBuf};

use anyhow::{Context, Error, Result, anyhow, bail};
use clap::Args;
use milepost::bulk::{Columns, Definition, Staging};
use milepost::{Enqueued, NewJob};
use milepost_cli_support::output;
use milepost_core::job::PAYLOAD_BYTES_MAX;
use milepost_core::port::Store;
use milepost_records::targets::Targets;

use crate::records::{BadLines, Bar, Format, Made, Records, Source, Worded, Words};

/// The maximum number of bytes of rows that a dry run stages.
const TRIAL_BYTES_MAX: usize = 64 * 1024 * 1024;

#[derive(Debug, Args)]
pub(super) struct FileArgs {
    /// The file whose rows are the targets, for a bulk job with columns; - is standard input
    #[arg(long, value_name = "FILE")]
    from: Option<PathBuf>,
    /// The format of the file, if its name does not show it
    #[arg(long, requires = "from")]
    format: Option<Format>,
    /// Write bad lines to this new file, and stage the others
    #[arg(long, value_name = "BADFILE", requires = "from")]
    skip_bad: Option<PathBuf>,
}

/// A file to be staged for a run.
pub(super) struct StagedFile {
    from: PathBuf,
    source: Source,
    columns: Columns,
    skip_bad: Option<PathBuf>,
}

impl FileArgs {
    /// Opens the file if the bulk job takes its targets from one. Rejects a missing file and a superfluous one.
    pub(super) fn open(self, definition: &Definition) -> Result<Option<StagedFile>> {
        let name = &definition.name;
        match (&definition.columns, self.from) {
            (None, None) => Ok(None),
            (Some(columns), Some(from)) => {
                let source = Source::open(&from, self.format)?;
                Ok(Some(StagedFile { from, source, columns: columns.clone(), skip_bad: self.skip_bad }))
            }
            (Some(columns), None) => {
                let columns: Vec<&str> = columns.names().collect();
                bail!(
                    "{name} reads its targets from a file with the columns {}; give one with --from FILE.csv or --from \
                     FILE.jsonl",
                    columns.join(", ")
                )
            }
            (None, Some(_)) => bail!(
                "{name} reads its targets from tables, by the SQL of its source: omit --from; a bulk job over a file \
                 has columns = {{ … }} instead of source and key (docs/BULK.md)"
            ),
        }
    }
}

/// The result of staging a file and starting the run.
pub(super) struct Staged {
    pub(super) started: Enqueued,
    pub(super) rows: u64,
    /// The number of bad lines that were skipped.
    pub(super) bad: u64,
}

impl StagedFile {
    fn rows(&self) -> Result<Records<'_, Targets<'_>>> {
        Records::open(&self.source, Targets::new(&self.columns))
    }

    /// Returns the file's name without its folder.
    fn name(&self) -> String {
        let name = self.from.file_name().filter(|_| self.from != Path::new("-"));
        name.map_or_else(|| self.source.name.clone(), |name| name.to_string_lossy().into_owned())
    }

    /// Stages all rows and starts the run. If staging fails, no run is started; if the start itself fails, the run may exist.
    pub(super) async fn start(
        &self,
        store: &dyn Store,
        definition: &Definition,
        job: &NewJob,
    ) -> Result<Staged> {
        // Checked first, so that rows are not staged for an invalid job.
        job.check(PAYLOAD_BYTES_MAX)?;
        let (mut rows, mut bad_lines) = self.looked_through()?;
        let mut staging = Staging::begin(store, definition, &self.name()).await?;
        let staged = tokio::select! {
            staged = self.stage(&mut rows, &mut staging, bad_lines.as_mut()) => staged,
            _ = tokio::signal::ctrl_c() => Err(anyhow!("interrupted")),
        };
        if let Err(error) = staged {
            return Err(self.given_up(staging, error).await);
        }
        let bad = bad_lines.as_ref().map_or(0, BadLines::count);
        bad_lines.map_or(Ok(()), BadLines::close)?;
        let rows = staging.rows();
        let started = staging
            .start_directed(job)
            .await
            .context("the start of the run failed; `milepost bulk list` shows whether it was started")?;
        Ok(Staged { started, rows, bad })
    }

    async fn stage(
        &self,
        rows: &mut Records<'_, Targets<'_>>,
        staging: &mut Staging,
        mut bad_lines: Option<&mut BadLines>,
    ) -> Result<()> {
        let bar = Bar::new("staging", Targets::WORDS.items, self.source.bytes);
        loop {
            match rows.next()? {
                Made::End => return Ok(()),
                Made::Good(row, _) => staging.add_made(row).await?,
                Made::Bad(bad) => rows.set_aside(&bad, bad_lines.as_deref_mut())?,
            }
            if staging.rows().is_multiple_of(1000) {
                bar.reached(rows.position(), staging.rows());
            }
        }
    }

    /// Discards the staged rows and adds the consequences to the error.
    async fn given_up(&self, staging: Staging, error: Error) -> Error {
        let left = match staging.give_up().await {
            Ok(()) => "the staged rows are removed",
            Err(_) => "a worker removes the staged rows in about an hour",
        };
        let (name, causes) = (&self.source.name, output::causes(&error));
        anyhow!("stopped in {name}: nothing was started, and {left}\n  because: {causes}")
    }

    /// Returns the rows and the file for bad lines. Without such a file, all rows are checked before the first is returned.
    fn looked_through(&self) -> Result<(Records<'_, Targets<'_>>, Option<BadLines>)> {
        self.rows()?.looked_through(self.skip_bad.as_deref(), &self.from)
    }

    /// Returns up to `count` rows from the start of the file, and the total number of rows.
    pub(super) fn first(&self, count: u64) -> Result<(Vec<String>, u64)> {
        let (mut rows, mut bad_lines) = self.looked_through()?;
        let (mut first, mut bytes, mut all) = (Vec::new(), 0, 0);
        loop {
            match rows.next()? {
                Made::End => break,
                Made::Good(row, _) => {
                    all += 1;
                    bytes += row.len();
                    if all <= count && bytes <= TRIAL_BYTES_MAX {
                        first.push(row);
                    }
                }
                Made::Bad(bad) => rows.set_aside(&bad, bad_lines.as_mut())?,
            }
        }
        bad_lines.map_or(Ok(()), BadLines::close)?;
        Ok((first, all))
    }
}

impl Worded for Targets<'_> {
    const WORDS: Words = Words { items: "rows", done: "started", others: "stage the others" };
}
