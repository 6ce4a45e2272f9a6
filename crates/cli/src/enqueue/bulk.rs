//! Enqueueing a file of jobs: it is checked completely, then its jobs are enqueued in batches. Memory is bounded.

use std::io;
use std::path::Path;
use std::pin::Pin;

use anyhow::{Error, Result, anyhow};
use milepost_cli_support::output::{self, Outcome};
use milepost_cli_support::store::{self, Schema, StoreAddress};
use milepost_core::job::{NewJob, PAYLOAD_BYTES_MAX};
use milepost_core::port::Store;
use serde::Serialize;

use super::EnqueueArgs;
use super::template::JobTemplate;
use crate::records::csv::{Columns, Decoder};
use crate::records::{BadLines, Bar, Flaw, Made, Records, Shape, Source, Worded, Words, jsonl};
use crate::redis::RedisNotifier;

/// A batch is enqueued when it has this many jobs …
const BATCH_JOBS_MAX: usize = 1000;
/// … or its payloads have this many bytes, whichever comes first.
const BATCH_BYTES_MAX: usize = 4 * 1024 * 1024;
/// The result of enqueueing a file.
#[derive(Debug, Default, Serialize)]
struct Summary {
    enqueued: u64,
    duplicates: u64,
    bad: u64,
}

pub(crate) async fn run(
    args: &EnqueueArgs,
    from: &Path,
    template: JobTemplate,
    address: &StoreAddress,
) -> Result<Outcome> {
    let source = Source::open(from, args.format)?;
    let jobs = Records::open(&source, Jobs::of(args, &template))?;
    let (mut jobs, bad_lines) = jobs.looked_through(args.skip_bad.as_deref(), from)?;
    let teller = args.redis.teller();
    let store = store::open(address, Schema::MadeWhenEmpty).await?;
    let store = args.reason.acting(store.as_ref())?;
    let mut enqueueing = Enqueueing {
        store: store.as_ref(),
        teller: &teller,
        source: &source,
        keyed: args.key_column.is_some(),
        summary: Summary::default(),
        last_line: 0,
        interrupt: Box::pin(tokio::signal::ctrl_c()),
    };
    let bar = Bar::new("enqueueing", Jobs::WORDS.items, source.bytes);
    enqueueing.all(&mut jobs, bad_lines, &bar).await?;
    let Summary { enqueued, duplicates, bad } = enqueueing.summary;
    let rate = bar.rate(enqueued + duplicates);
    drop(bar);
    if args.json {
        output::heard_or_not(output::json(&enqueueing.summary))?;
    } else {
        output::change(format_args!(
            "{enqueued} enqueued, {duplicates} duplicates, {bad} bad lines ({rate} jobs/s)"
        ))?;
    }
    Ok(Outcome::Done)
}

/// The second pass over the file.
struct Enqueueing<'a> {
    store: &'a dyn Store,
    teller: &'a RedisNotifier,
    source: &'a Source,
    keyed: bool,
    summary: Summary,
    /// The last line whose job is committed.
    last_line: u64,
    /// One future for the whole pass, so that a Ctrl-C between two batches is not missed.
    interrupt: Pin<Box<dyn Future<Output = io::Result<()>>>>,
}

impl Enqueueing<'_> {
    async fn all(
        &mut self,
        jobs: &mut Records<'_, Jobs<'_>>,
        mut bad_lines: Option<BadLines>,
        bar: &Bar,
    ) -> Result<()> {
        let mut batch = Batch::default();
        loop {
            match jobs.next().map_err(|error| self.stopped(&error, false))? {
                Made::End => break,
                Made::Good(job, line) => batch.add(job, line),
                Made::Bad(bad) => {
                    let aside = jobs.set_aside(&bad, bad_lines.as_mut());
                    aside.map_err(|error| self.stopped(&error, false))?;
                }
            }
            if batch.is_full() {
                self.commit(&mut batch).await?;
                bar.reached(jobs.position(), self.committed());
            }
        }
        self.commit(&mut batch).await?;
        if let Some(bad_lines) = bad_lines {
            self.summary.bad = bad_lines.count();
            bad_lines.close()?;
        }
        Ok(())
    }

    async fn commit(&mut self, batch: &mut Batch) -> Result<()> {
        if batch.jobs.is_empty() {
            return Ok(());
        }
        let answers = tokio::select! {
            answers = self.store.enqueue_many(&batch.jobs) => answers.map_err(|error| {
                let is_unknown = error.is_transient();
                self.stopped(&error.into(), is_unknown)
            })?,
            _ = &mut self.interrupt => return Err(self.stopped(&anyhow!("interrupted"), true)),
        };
        let duplicates = answers.iter().filter(|answer| answer.duplicate).count();
        self.summary.duplicates += duplicates as u64;
        self.summary.enqueued += (answers.len() - duplicates) as u64;
        self.last_line = batch.last_line;
        batch.clear();
        self.teller.ready().await;
        Ok(())
    }

    const fn committed(&self) -> u64 {
        self.summary.enqueued + self.summary.duplicates
    }

    /// Adds to the error how many jobs were enqueued and how to continue. The outcome of the next batch is unknown if the connection broke while it was
    /// committed.
    fn stopped(&self, error: &Error, is_unknown: bool) -> Error {
        let (name, line, jobs) = (&self.source.name, self.last_line, self.committed());
        let causes = output::causes(error);
        let unknown = "the next batch may be committed or not; `milepost jobs list` shows it";
        let advice = match (jobs, self.keyed, is_unknown) {
            (_, true, _) => {
                "Run the same command again to continue: --key-column prevents duplicate jobs.".to_owned()
            }
            (0, false, true) => {
                "The first batch may be committed or not; `milepost jobs list` shows it.".to_owned()
            }
            (0, false, false) => {
                "Nothing is committed: remove the cause, then run the same command again.".to_owned()
            }
            (_, false, _) => {
                let unknown = if is_unknown { format!(" ({unknown})") } else { String::new() };
                format!(
                    "These jobs have no keys, so running the same command again would duplicate them: enqueue only the\n\
                     lines after that one{unknown}. With\n\
                     --key-column, a command can be run again without duplicates."
                )
            }
        };
        anyhow!(
            "stopped in {name}: {jobs} jobs are committed, up to line {line}\n  because: {causes}\n{advice}"
        )
    }
}

/// Jobs to be enqueued in one transaction.
#[derive(Default)]
struct Batch {
    jobs: Vec<NewJob>,
    bytes: usize,
    last_line: u64,
}

impl Batch {
    fn add(&mut self, job: NewJob, line: u64) {
        self.bytes += job.payload.get().len();
        self.last_line = line;
        self.jobs.push(job);
    }

    const fn is_full(&self) -> bool {
        self.jobs.len() >= BATCH_JOBS_MAX || self.bytes >= BATCH_BYTES_MAX
    }

    fn clear(&mut self) {
        self.jobs.clear();
        self.bytes = 0;
    }
}

/// Converts records to jobs.
struct Jobs<'a> {
    template: &'a JobTemplate,
    key_column: Option<&'a str>,
    infer: bool,
    /// The columns of a CSV file.
    columns: Option<Columns>,
    decoder: Decoder,
}

impl<'a> Jobs<'a> {
    fn of(args: &'a EnqueueArgs, template: &'a JobTemplate) -> Self {
        let (key_column, infer) = (args.key_column.as_deref(), args.infer);
        Self { template, key_column, infer, columns: None, decoder: Decoder::new() }
    }
}

impl Worded for Jobs<'_> {
    const WORDS: Words = Words { items: "jobs", done: "enqueued", others: "enqueue the others" };
}

impl Shape for Jobs<'_> {
    type Made = NewJob;

    fn header(&mut self, header: &[u8]) -> Result<(), Flaw> {
        self.columns = Some(Columns::new(header, self.key_column, self.infer)?);
        Ok(())
    }

    fn is_single(&self) -> bool {
        self.columns.as_ref().is_some_and(Columns::is_single)
    }

    fn make(&mut self, text: &[u8]) -> Result<NewJob, Flaw> {
        let (payload, key) = match &self.columns {
            Some(columns) => columns.read(&mut self.decoder, text)?,
            None => {
                let (payload, key) = jsonl::read(text, self.key_column)?;
                (payload.to_owned(), key)
            }
        };
        let invalid = |e: milepost_core::job::error::InvalidJob| Flaw::new(0, e.to_string());
        let job = self.template.job(payload, key).map_err(invalid)?;
        job.check(PAYLOAD_BYTES_MAX).map_err(invalid)?;
        Ok(job)
    }
}
