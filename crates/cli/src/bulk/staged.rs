//! The rows of a file as targets of a run.

use std::borrow::Cow;
use std::collections::HashMap;
use std::path::{Path, PathBuf};

use anyhow::{Context, Error, Result, anyhow, bail};
use clap::Args;
use milepost::bulk::{Columns, Definition, Staging};
use milepost::{Enqueued, NewJob};
use milepost_core::bulk::staged::{BadRow, Given};
use milepost_core::job::PAYLOAD_BYTES_MAX;
use milepost_core::port::Store;
use serde_json::value::RawValue;

use crate::output;
use crate::records::csv::{self, Decoder};
use crate::records::{BadLines, Bar, Flaw, Format, Made, Records, Shape, Source, Words, jsonl};

/// How many bytes of rows a dry run stages at most.
const TRIAL_BYTES_MAX: usize = 64 * 1024 * 1024;

#[derive(Debug, Args)]
pub(super) struct FileArgs {
    /// The file whose rows are the targets, for a bulk job with columns; - is standard input
    #[arg(long, value_name = "FILE")]
    from: Option<PathBuf>,
    /// What the file holds, when its name does not tell
    #[arg(long, requires = "from")]
    format: Option<Format>,
    /// Write bad lines to this file, replacing it, and go on with the others
    #[arg(long, value_name = "BADFILE", requires = "from")]
    skip_bad: Option<PathBuf>,
}

/// A file that is staged for a run.
pub(super) struct StagedFile {
    from: PathBuf,
    source: Source,
    columns: Columns,
    skip_bad: Option<PathBuf>,
}

impl FileArgs {
    /// The file, if the bulk job takes its targets from one. Refuses one too few and one too many.
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
                    "{name} takes its targets from a file with the columns {}; name one with --from FILE.csv or --from \
                     FILE.jsonl",
                    columns.join(", ")
                )
            }
            (None, Some(_)) => bail!(
                "{name} takes its targets from tables, by the SQL of its source: leave --from out; a bulk job over a file \
                 has columns = {{ … }} instead of source and key (docs/BULK.md)"
            ),
        }
    }
}

/// What became of a file.
pub(super) struct Staged {
    pub(super) started: Enqueued,
    pub(super) rows: u64,
    /// Lines that were set aside.
    pub(super) bad: u64,
}

impl StagedFile {
    fn rows(&self) -> Result<Records<'_, Rows<'_>>> {
        let shape = Rows { columns: &self.columns, places: None, is_single: false, decoder: Decoder::new() };
        Records::open(&self.source, shape)
    }

    /// The file's name, without the folders that it lies in.
    fn name(&self) -> String {
        let name = self.from.file_name().filter(|_| self.from != Path::new("-"));
        name.map_or_else(|| self.source.name.clone(), |name| name.to_string_lossy().into_owned())
    }

    /// Stages all rows and starts the run; whatever goes wrong, nothing is started.
    pub(super) async fn start(
        &self,
        store: &dyn Store,
        definition: &Definition,
        job: &NewJob,
    ) -> Result<Staged> {
        // Before the rows are staged in vain.
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
            .context("the run could not be started; `milepost bulk list` tells whether it was")?;
        Ok(Staged { started, rows, bad })
    }

    async fn stage(
        &self,
        rows: &mut Records<'_, Rows<'_>>,
        staging: &mut Staging,
        mut bad_lines: Option<&mut BadLines>,
    ) -> Result<()> {
        let bar = Bar::new("staging", Rows::WORDS.items, self.source.bytes);
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

    /// The error, with what it means.
    async fn given_up(&self, staging: Staging, error: Error) -> Error {
        let left = match staging.give_up().await {
            Ok(()) => "what was staged is removed",
            Err(_) => "what was staged is removed by a worker, in an hour or so",
        };
        let (name, causes) = (&self.source.name, output::causes(&error));
        anyhow!("stopped in {name}: nothing was started, and {left}\n  because: {causes}")
    }

    /// The rows, and where bad ones go; without such a place all are looked at before the first is answered.
    fn looked_through(&self) -> Result<(Records<'_, Rows<'_>>, Option<BadLines>)> {
        self.rows()?.looked_through(self.skip_bad.as_deref(), &self.from)
    }

    /// The first so many rows, and how many there are in all.
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

/// Records as rows to be staged.
struct Rows<'a> {
    columns: &'a Columns,
    /// Where in a CSV file's rows each column stands.
    places: Option<(csv::Columns, HashMap<&'a str, usize>)>,
    is_single: bool,
    decoder: Decoder,
}

impl Shape for Rows<'_> {
    type Made = String;
    const WORDS: Words = Words { items: "rows", done: "started", others: "go on with the others" };

    fn header(&mut self, header: &[u8]) -> Result<(), Flaw> {
        let found = csv::Columns::new(header, None, false)?;
        let mut places = HashMap::new();
        for name in self.columns.names() {
            let place = found.position(name).ok_or_else(|| {
                let why = format!(
                    "there is no column {name:?}, which the bulk job reads; the columns are {}",
                    found.told()
                );
                Flaw::new(0, why)
            })?;
            places.insert(name, place);
        }
        self.is_single = found.is_single();
        self.places = Some((found, places));
        Ok(())
    }

    fn is_single(&self) -> bool {
        self.is_single
    }

    fn make(&mut self, text: &[u8]) -> Result<String, Flaw> {
        match &self.places {
            Some((columns, places)) => {
                let fields = columns.fields(&mut self.decoder, text)?;
                let row = self.columns.row(|name| places.get(name).map(|&at| Given::Field(fields[at])));
                row.map_err(|bad| flaw(bad, |name| places.get(name).map(|&at| csv::field_start(text, at))))
            }
            None => of_line(self.columns, text),
        }
    }
}

/// A line of JSON as a row.
fn of_line(columns: &Columns, line: &[u8]) -> Result<String, Flaw> {
    let (text, _) = jsonl::read(line, None)?;
    let members: HashMap<Cow<'_, str>, &RawValue> =
        serde_json::from_str(text).map_err(|_| Flaw::new(0, "this is not a JSON object"))?;
    let row = columns.row(|name| members.get(name).map(|value| Given::Json(value)));
    row.map_err(|bad| flaw(bad, |name| Some(members.get(name)?.get().as_ptr().addr() - line.as_ptr().addr())))
}

/// A bad row, at the value that makes it so.
fn flaw(bad: BadRow, place: impl Fn(&str) -> Option<usize>) -> Flaw {
    let at = bad.column.as_deref().and_then(place).unwrap_or(0);
    Flaw::new(at, bad.why)
}
