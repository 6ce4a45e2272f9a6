//! Files whose rows are the targets of a run. The whole file is checked before the first row is stored.

use std::fmt::Write as _;
use std::io::Cursor;

use axum::body::Bytes;
use milepost_core::bulk::dry_run::{FileSample, SAMPLE_BYTES_MAX};
use milepost_core::bulk::row_pages::RowPages;
use milepost_core::bulk::staged::Columns;
use milepost_core::job::{Enqueued, NewJob};
use milepost_core::port::Store;
use milepost_core::text::is_unprintable;
use milepost_records::targets::Targets;
use milepost_records::{Format, Made, Records, Unreadable};
use serde_json::value::RawValue;
use tokio::sync::mpsc;

use crate::problem::{Code, Problem};

/// The number of bad lines that a message lists.
const LISTED_MAX: usize = 5;
/// The maximum length of a file's name, in characters.
const NAME_CHARS_MAX: usize = 200;

/// A file that was sent to the server.
#[derive(Clone, Debug)]
pub(crate) struct TargetFile {
    /// Its name, for operators.
    name: String,
    format: Format,
    /// Its content. The limits of request bodies bound it.
    bytes: Bytes,
}

impl TargetFile {
    /// Creates a file. `name`: with or without a path of the client's machine.
    pub(crate) fn new(name: &str, format: Format, bytes: Bytes) -> Self {
        let last = name.rsplit(['/', '\\']).next().unwrap_or_default();
        let name = last.chars().filter(|&c| !is_unprintable(c)).take(NAME_CHARS_MAX).collect();
        Self { name, format, bytes }
    }

    /// Stores its rows as targets, and starts the run over them. Returns the run, and the number of rows.
    pub(crate) async fn start(
        self,
        store: &dyn Store,
        columns: Columns,
        job: &NewJob,
    ) -> Result<(Enqueued, u64), Problem> {
        let name = self.name.clone();
        let (checked, its_columns) = (self.clone(), columns.clone());
        on_a_thread(move || checked.check(&its_columns, 0)).await?;
        // One page at a time is in memory.
        let (pages, mut read) = mpsc::channel(1);
        let reading = tokio::task::spawn_blocking(move || self.read(&columns, &pages));
        let mut staging = store.stage_bulk(&name).await?;
        let mut rows = 0;
        while let Some(page) = read.recv().await {
            let page: Vec<String> = page;
            rows += page.len() as u64;
            if let Err(error) = staging.add(page).await {
                drop(staging.give_up().await);
                return Err(error.into());
            }
        }
        reading.await.map_err(|_| broken())??;
        Ok((staging.start(job).await?, rows))
    }

    /// Returns the first rows, up to `rows_max`, and the number of all rows.
    pub(crate) async fn sample(self, columns: Columns, rows_max: u64) -> Result<FileSample, Problem> {
        on_a_thread(move || self.check(&columns, rows_max)).await
    }

    fn records<'c>(&self, columns: &'c Columns) -> Result<Records<Cursor<&[u8]>, Targets<'c>>, Problem> {
        Records::open(Cursor::new(&*self.bytes), self.format, Targets::new(columns)).map_err(|unreadable| {
            let problem =
                Problem::new(Code::InvalidBulk, format!("{}: nothing was started: {unreadable}", self.name));
            match unreadable {
                Unreadable::Header(bad) => problem.at(format!("line {}, column {}", bad.line, bad.column)),
                _ => problem.at("body"),
            }
        })
    }

    /// Fails if any line is bad. Returns the number of all rows, and the first ones, up to `sampled_max`.
    fn check(&self, columns: &Columns, sampled_max: u64) -> Result<FileSample, Problem> {
        let mut records = self.records(columns)?;
        let (mut sample, mut bytes) = (FileSample::default(), 0);
        let (mut bad, mut first, mut listed) = (0, None, String::new());
        loop {
            match records.read().map_err(|_| broken())? {
                Made::End => break,
                Made::Good(row, _) => {
                    bytes += row.len();
                    if sample.total < sampled_max && bytes <= SAMPLE_BYTES_MAX {
                        sample.first.push(RawValue::from_string(row).map_err(|_| broken())?);
                    }
                    sample.total += 1;
                }
                Made::Bad(record) => {
                    bad += 1;
                    if bad <= LISTED_MAX {
                        let _ = write!(listed, "; {record}");
                    }
                    first.get_or_insert((record.line, record.column));
                }
            }
        }
        let Some((line, column)) = first else { return Ok(sample) };
        if bad > LISTED_MAX {
            let _ = write!(listed, "; and {} more", bad - LISTED_MAX);
        }
        let rows = if bad == 1 { "a row is bad" } else { "rows are bad" };
        let words = format!("{}: {rows}, so nothing was started{listed}", self.name);
        Err(Problem::new(Code::InvalidBulk, words).at(format!("line {line}, column {column}")))
    }

    /// Sends all rows in pages; stops when the receiver is gone.
    fn read(&self, columns: &Columns, pages: &mpsc::Sender<Vec<String>>) -> Result<(), Problem> {
        let mut records = self.records(columns)?;
        let mut rows = RowPages::default();
        loop {
            let made = records.read().map_err(|_| broken())?;
            let is_end = matches!(made, Made::End);
            let page = match made {
                Made::Good(row, _) => rows.add(row),
                Made::Bad(_) => None,
                Made::End => Some(rows.rest()),
            };
            let is_received = page.is_none_or(|page| pages.blocking_send(page).is_ok());
            if is_end || !is_received {
                return Ok(());
            }
        }
    }
}

/// Runs a computation that can take long on another thread.
async fn on_a_thread<T: Send + 'static>(
    compute: impl FnOnce() -> Result<T, Problem> + Send + 'static,
) -> Result<T, Problem> {
    tokio::task::spawn_blocking(compute).await.map_err(|_| broken())?
}

fn broken() -> Problem {
    Problem::new(Code::BodyUnreadable, "the file could not be read")
}
