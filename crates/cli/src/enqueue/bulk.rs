//! A file of jobs: checked as a whole, then enqueued in batches. Memory stays bounded.

use std::fmt::Write as _;
use std::fs::File;
use std::io::{self, BufReader};
use std::ops::Range;
use std::path::Path;
use std::pin::Pin;

use anyhow::{Context, Error, Result, anyhow};
use milepost_core::job::{NewJob, PAYLOAD_BYTES_MAX};
use milepost_core::port::Store;
use serde::Serialize;

use super::bad_lines::BadLines;
use super::csv::{Columns, Decoder};
use super::place::{BadRecord, Flaw};
use super::progress::Bar;
use super::record::{Next, Record, RecordReader};
use super::source::Source;
use super::template::JobTemplate;
use super::{EnqueueArgs, Format, jsonl};
use crate::output::{self, Outcome};
use crate::redis::Teller;
use crate::store::{self, Schema, StoreAddress};

/// A batch is enqueued when it has this many jobs …
const BATCH_JOBS_MAX: usize = 1000;
/// … or its payloads this many bytes, whichever comes first.
const BATCH_BYTES_MAX: usize = 4 * 1024 * 1024;
/// How many bad lines are told one by one.
const TOLD_MAX: usize = 5;

/// What came of a file.
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
    let mut jobs = Jobs::open(&source, args, &template)?;
    let bad_lines = match &args.skip_bad {
        Some(path) => Some(BadLines::create(path, from)?),
        None => {
            check(&mut jobs)?;
            jobs = Jobs::open(&source, args, &template)?;
            None
        }
    };
    let teller = args.redis.teller();
    let store = store::open(address, Schema::MadeWhenEmpty).await?;
    let mut enqueueing = Enqueueing {
        store: store.as_ref(),
        teller: &teller,
        source: &source,
        keyed: args.key_column.is_some(),
        summary: Summary::default(),
        last_line: 0,
        interrupt: Box::pin(tokio::signal::ctrl_c()),
    };
    let bar = Bar::new("enqueueing", source.bytes);
    enqueueing.all(&mut jobs, bad_lines, &bar).await?;
    let Summary { enqueued, duplicates, bad } = enqueueing.summary;
    let rate = bar.rate(enqueued + duplicates);
    drop(bar);
    if args.json {
        output::heard_or_not(output::json(&enqueueing.summary))?;
    } else {
        output::deed(format_args!(
            "{enqueued} enqueued, {duplicates} duplicates, {bad} bad lines ({rate} jobs/s)"
        ))?;
    }
    Ok(Outcome::Done)
}

/// Reads the whole file, enqueues nothing and fails when any line is bad.
fn check(jobs: &mut Jobs<'_>) -> Result<()> {
    let bar = Bar::new("checking", jobs.source.bytes);
    let mut told = String::new();
    let (mut good, mut bad, mut records, mut told_lines) = (0_u64, 0_u64, 0_usize, 0_u64);
    loop {
        match jobs.next()? {
            NextJob::End => break,
            NextJob::Job(..) => good += 1,
            NextJob::Bad(record) => {
                bad += record.lines;
                records += 1;
                if records <= TOLD_MAX {
                    told_lines = bad;
                    let _ = write!(told, "\n  {}, {record}", jobs.source.name);
                }
            }
        }
        if (good + bad).is_multiple_of(1000) {
            bar.reached(jobs.reader.position(), good);
        }
    }
    drop(bar);
    match bad {
        0 => Ok(()),
        1 => Err(anyhow!("a line is bad, so nothing was enqueued{told}{SKIP_HINT}")),
        _ => {
            if records > TOLD_MAX {
                let _ = write!(told, "\n  and {} more", bad - told_lines);
            }
            Err(anyhow!("{bad} lines are bad, so nothing was enqueued{told}{SKIP_HINT}"))
        }
    }
}

const SKIP_HINT: &str = "\nMend them, or add --skip-bad BADFILE to set them aside and enqueue the others.";

/// The second pass.
struct Enqueueing<'a> {
    store: &'a dyn Store,
    teller: &'a Teller,
    source: &'a Source,
    keyed: bool,
    summary: Summary,
    /// The last line whose job is committed.
    last_line: u64,
    /// One for the whole pass, so that no Ctrl-C between two batches is missed.
    interrupt: Pin<Box<dyn Future<Output = io::Result<()>>>>,
}

impl Enqueueing<'_> {
    async fn all(&mut self, jobs: &mut Jobs<'_>, mut bad_lines: Option<BadLines>, bar: &Bar) -> Result<()> {
        let mut batch = Batch::default();
        loop {
            match jobs.next().map_err(|error| self.stopped(&error))? {
                NextJob::End => break,
                NextJob::Job(job, line) => batch.add(job, line),
                NextJob::Bad(bad) => match &mut bad_lines {
                    Some(bad_lines) => bad_lines
                        .add(&bad, jobs.header.as_ref(), &mut jobs.reader)
                        .map_err(|error| self.stopped(&error))?,
                    // The first pass found no bad line, so the file has changed since.
                    None => return Err(self.stopped(&anyhow!("{}, {bad}", self.source.name))),
                },
            }
            if batch.is_full() {
                self.commit(&mut batch).await?;
                bar.reached(jobs.reader.position(), self.committed());
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
            answers = self.store.enqueue_many(&batch.jobs) => answers.map_err(|error| self.stopped(&error.into()))?,
            _ = &mut self.interrupt => return Err(self.stopped(&anyhow!("interrupted"))),
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

    /// The error, with how far it came and how to go on.
    fn stopped(&self, error: &Error) -> Error {
        let (name, line, jobs) = (&self.source.name, self.last_line, self.committed());
        let causes = output::causes(error);
        let advice = match (jobs, self.keyed) {
            (_, true) => "Run the same command again to go on: --key-column keeps jobs from being doubled.",
            (0, false) => "The first batch may be committed or not; `milepost jobs list` tells.",
            (_, false) => {
                "These jobs have no keys, so running the same command again would double them: enqueue only the\n\
                 lines after that one (the next batch may be committed or not; `milepost jobs list` tells). With\n\
                 --key-column a command can be run again and doubles nothing."
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

/// The jobs of a file, one after another.
struct Jobs<'a> {
    source: &'a Source,
    template: &'a JobTemplate,
    key_column: Option<&'a str>,
    reader: RecordReader<BufReader<&'a File>>,
    record: Record,
    /// What a CSV file has before its rows.
    columns: Option<Columns>,
    header: Option<Range<u64>>,
    decoder: Decoder,
}

enum NextJob {
    Job(NewJob, u64),
    Bad(BadRecord),
    End,
}

impl<'a> Jobs<'a> {
    fn open(source: &'a Source, args: &'a EnqueueArgs, template: &'a JobTemplate) -> Result<Self> {
        let mut jobs = Self {
            source,
            template,
            key_column: args.key_column.as_deref(),
            reader: source.records().with_context(|| format!("cannot read {}", source.name))?,
            record: Record::default(),
            columns: None,
            header: None,
            decoder: Decoder::new(),
        };
        if source.format == Format::Csv {
            jobs.read_header(args.infer)?;
        }
        Ok(jobs)
    }

    fn read_header(&mut self, infer: bool) -> Result<()> {
        let name = &self.source.name;
        let bad = match self.next_record()? {
            Next::End => {
                return Err(anyhow!("{name} is empty; the first row of a CSV file names its columns"));
            }
            Next::Bad(bad) => bad,
            Next::Record => match Columns::new(&self.record.text, self.key_column, infer) {
                Ok(columns) => {
                    self.columns = Some(columns);
                    self.header = Some(self.record.bytes.clone());
                    return Ok(());
                }
                Err(flaw) => self.bad(flaw),
            },
        };
        Err(anyhow!("{name}, {bad}"))
    }

    fn next(&mut self) -> Result<NextJob> {
        Ok(match self.next_record()? {
            Next::End => NextJob::End,
            Next::Bad(bad) => NextJob::Bad(bad),
            Next::Record => match self.job() {
                Ok(job) => NextJob::Job(job, self.record.line),
                Err(flaw) => NextJob::Bad(self.bad(flaw)),
            },
        })
    }

    fn next_record(&mut self) -> Result<Next> {
        loop {
            let next = self.reader.next(&mut self.record);
            let next = next.with_context(|| format!("cannot read {}", self.source.name))?;
            let blank = matches!(next, Next::Record) && self.record.text.trim_ascii().is_empty();
            // Where there are several columns, or no header yet, a blank line is not meant as a row.
            if !blank || self.columns.as_ref().is_some_and(Columns::is_single) {
                return Ok(next);
            }
        }
    }

    fn job(&mut self) -> Result<NewJob, Flaw> {
        let text = &self.record.text;
        let (payload, key) = match &self.columns {
            Some(columns) => columns.read(&mut self.decoder, text)?,
            None => {
                let (payload, key) = jsonl::read(text, self.key_column)?;
                (payload.to_owned(), key)
            }
        };
        let invalid = |e: milepost_core::error::InvalidJob| Flaw::new(0, e.to_string());
        let job = self.template.job(payload, key).map_err(invalid)?;
        job.check(PAYLOAD_BYTES_MAX).map_err(invalid)?;
        Ok(job)
    }

    fn bad(&self, flaw: Flaw) -> BadRecord {
        BadRecord::new(&self.record.text, self.record.line, self.record.bytes.clone(), flaw)
    }
}
