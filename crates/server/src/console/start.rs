//! The forms that create a job, start a run of a bulk job, and start a batch.

use std::path::Path;

use axum::response::Response;
use milepost_core::actions::Action as _;
use milepost_core::actions::batch::NewBatchAction;
use milepost_core::actions::bulk_run::NewRunAction;
use milepost_core::actions::job::NewJobAction;
use milepost_core::batch::start::NewBatch;
use milepost_core::bulk::chunk::FIRST_ROWS;
use milepost_core::bulk::definition::Definition;
use milepost_core::bulk::dry_run::{CHUNKS_DEFAULT, DryRun, is_rolled_back};
use milepost_core::bulk::parameters::Parameters;
use milepost_core::job::error::InvalidJob;
use milepost_core::job::{NewJob, PAYLOAD_BYTES_MAX, Priority, QUEUE_DEFAULT, StartAt};
use milepost_records::Format;
use serde_json::Value;

use super::flash::Flash;
use super::form::{Action, Control, Field, Sent, acting, once};
use super::page::Page;
use super::typed_fields;
use crate::api::batches::start_checked;
use crate::api::bulk::{new_dry_run, new_run, new_run_over_file};
use crate::app::App;
use crate::problem::Problem;
use crate::target_file::TargetFile;

/// The field with the parameters of a run, or with those without a separate field.
const PARAMETERS: &str = "parameters";
/// The field with the input of a batch, or with the members without a separate field.
const INPUT: &str = "input";

/// Returns the button that creates a job. The kind and the queue that the list is filtered by are filled in.
pub(super) fn job_form(page: &Page, kind: &str, queue: &str) -> Option<Action> {
    let queue = if queue.is_empty() { QUEUE_DEFAULT } else { queue };
    let form = Action::new(page, "create", "/jobs/create", NewJobAction::Create)
        .asks(NewJobAction::Create.title())
        .with(Field::shown("kind", "Kind", kind, "such as mail").required())
        .with(json("payload", "Payload, JSON"))
        .with(Field::shown("queue", "Queue", queue, "").required())
        .with(Field::shown("key", "Key", "", "none; with a key, the job is created once"))
        .with(Field::shown("group", "Group", "", "none; jobs of a group run one at a time"))
        .with(priority())
        .with(delay())
        .with(once());
    page.viewer.operates.then_some(form)
}

/// Returns the button that starts a run of a bulk job, with a field for each parameter, and for the file if its targets come from one.
pub(super) fn run_form(page: &Page, definition: &Definition, place: usize) -> Option<Action> {
    let form = Action::new(page, "start", "/bulk/start", NewRunAction::Start)
        .asks(format!("Start {}", definition.name))
        .with(Field::hidden("name", &definition.name));
    let form = targets(definition)
        .into_iter()
        .fold(form, Action::with)
        .with(Field::shown("key", "Key", "", "none; with a key, the run is started once"))
        .with(priority())
        .with(delay())
        .with(once())
        .among(place);
    page.viewer.operates.then_some(form)
}

/// Returns the button that starts a dry run, if the bulk job can have one.
pub(super) fn dry_run_form(page: &Page, definition: &Definition) -> Option<Action> {
    let form = Action::new(page, "dry-run", "/bulk/dry-run", NewRunAction::DryRun)
        .asks(format!("Dry run of {}", definition.name))
        .with(Field::hidden("name", &definition.name));
    let form = targets(definition)
        .into_iter()
        .fold(form, Action::with)
        .with(Field::shown("rows", "Rows of a chunk", FIRST_ROWS.to_string(), "").required())
        .with(Field::shown("chunks", "Chunks", CHUNKS_DEFAULT.to_string(), "").required())
        .with(once());
    (page.viewer.operates && is_rolled_back(definition)).then_some(form)
}

/// Returns the fields for the file and the parameters of a run.
fn targets(definition: &Definition) -> Vec<Field> {
    let file = definition.columns.as_ref().map(|columns| {
        let columns: Vec<&str> = columns.names().collect();
        let label = format!("File (.csv with a header, .jsonl) with {}", columns.join(", "));
        Field::shown("file", label, "", "").required().edited_as(Control::File(".csv,.jsonl,.ndjson"))
    });
    let parameters = match &definition.statements {
        Some(statements) => typed_fields::of_parameters(&statements.parameters, PARAMETERS),
        None => vec![json(PARAMETERS, "Parameters, JSON")],
    };
    file.into_iter().chain(parameters).collect()
}

/// Returns the button that starts a batch of a DAG, with a field for each property of its input.
pub(super) fn batch_form(page: &Page, dag: &str, schema: Option<&Value>) -> Option<Action> {
    let input = schema.and_then(|schema| typed_fields::fields(schema, INPUT));
    let input = input.unwrap_or_else(|| vec![json(INPUT, "Input, JSON")]);
    let form = Action::new(page, "start", "/batches/start", NewBatchAction::Start)
        .asks(format!("Start a batch of {dag}"))
        .with(Field::hidden("dag", dag));
    let form = input.into_iter().fold(form, Action::with);
    let form =
        form.with(Field::shown("key", "Key", "", "none; with a key, the batch is started once")).with(once());
    page.viewer.operates.then_some(form)
}

fn json(name: &'static str, label: &'static str) -> Field {
    Field::shown(name, label, "{}", "").required().edited_as(Control::Json)
}

fn priority() -> Field {
    Field::shown("priority", "Priority", "", "from 1 (first) to 4 (last)")
}

fn delay() -> Field {
    Field::shown("wait", "Starts in", "", "now; or 90s, 10m, 2h, 1d")
}

/// Creates a job, and shows its page.
pub(super) async fn create_job(app: App, sent: Sent) -> Response {
    let created = async {
        let actor = sent.actor_with_reason()?;
        let mut job = NewJob::from_json(sent.needed("kind")?, document(&sent, "payload")).map_err(refused)?;
        job.queue = sent.needed("queue")?.to_owned();
        job.group = sent.field("group").map(str::to_owned);
        let created = app.intake.create(actor, scheduled(job, &sent)?).await?;
        Ok((format!("/jobs/{}", created.job), created.duplicate))
    };
    show(&sent, "job", created.await)
}

/// Starts a run of a bulk job, and shows its page.
pub(super) async fn start_run(app: App, sent: Sent) -> Response {
    let started = async {
        let store = acting(&app, &sent)?;
        let parameters = parameters(&sent)?;
        let (name, store) = (sent.needed("name")?, store.as_ref());
        let started = if sent.field("file").is_some() {
            let (job, columns) = new_run_over_file(name, &parameters, store).await?;
            target_file(&sent)?.start(store, columns, &scheduled(job, &sent)?).await?.0
        } else {
            let job = new_run(name, &parameters, store).await?;
            store.start_bulk(&scheduled(job, &sent)?).await?
        };
        Ok((format!("/bulk/{}", started.job), started.duplicate))
    };
    show(&sent, "run", started.await)
}

/// Creates the job of a dry run, and shows its page, where the cost appears.
pub(super) async fn start_dry_run(app: App, sent: Sent) -> Response {
    let started = async {
        let store = acting(&app, &sent)?;
        let new = DryRun::new(sent.needed("name")?, parameters(&sent)?);
        let (rows, chunks) =
            (sent.read("rows")?.unwrap_or(new.rows), sent.read("chunks")?.unwrap_or(new.chunks));
        let file = sent.field("file").map(|_| target_file(&sent)).transpose()?;
        let mut job = new_dry_run(DryRun { rows, chunks, ..new }, file, store.as_ref()).await?;
        job.key = sent.key();
        let created = store.enqueue(&job).await.map_err(Problem::from)?;
        Ok((format!("/jobs/{}", created.job), created.duplicate))
    };
    show(&sent, "dry run", started.await)
}

fn parameters(sent: &Sent) -> Result<Parameters, Flash> {
    Parameters::read(typed_fields::value(sent, PARAMETERS)?.get())
        .ok_or_else(|| Flash::refused("nothing was done: the parameters are no JSON object".to_owned()))
}

fn target_file(sent: &Sent) -> Result<TargetFile, Flash> {
    let (name, bytes) = sent.file()?;
    let format = Format::of_name(Path::new(name)).ok_or_else(|| {
        Flash::refused(format!("nothing was done: the name of {name:?} must end in .csv, .jsonl or .ndjson"))
    })?;
    Ok(TargetFile::new(name, format, bytes))
}

/// Starts a batch, and shows its page.
pub(super) async fn start_a_batch(app: App, sent: Sent) -> Response {
    let started = async {
        let store = acting(&app, &sent)?;
        let input = typed_fields::value(&sent, INPUT)?;
        let mut batch = NewBatch::new(sent.needed("dag")?, &input)
            .map_err(|error| Flash::refused(format!("nothing was done: the input is no JSON: {error}")))?;
        batch.key = sent.key();
        let started = start_checked(&app, store.as_ref(), batch, None).await?;
        Ok((format!("/batches/{}", started.batch), started.duplicate))
    };
    show(&sent, "batch", started.await)
}

/// Shows the page of the job, run or batch that was created, or the refusal on the page of the form.
fn show(sent: &Sent, noun: &str, made: Result<(String, bool), Flash>) -> Response {
    match made {
        Ok((page, false)) => Flash::done(format!("The {noun} was created.")).on(&page),
        Ok((page, true)) if sent.field("key").is_none() => {
            Flash::done(format!("This form was submitted before. It created this {noun}.")).on(&page)
        }
        Ok((page, true)) => {
            Flash::done(format!("A {noun} with this key exists already, this one; nothing was changed."))
                .on(&page)
        }
        Err(flash) => sent.answer(Err(flash)),
    }
}

/// Sets the options that jobs and runs have.
fn scheduled(mut job: NewJob, sent: &Sent) -> Result<NewJob, Flash> {
    job.key = sent.key();
    if let Some(priority) = sent.read::<u8>("priority")? {
        job.priority = Priority::try_from(priority).map_err(refused)?;
    }
    job.start = sent.wait()?.map_or(StartAt::Now, StartAt::After);
    job.check(PAYLOAD_BYTES_MAX).map_err(refused)?;
    Ok(job)
}

fn document(sent: &Sent, name: &str) -> String {
    sent.field(name).unwrap_or("{}").to_owned()
}

fn refused(invalid: InvalidJob) -> Flash {
    Flash::refused(format!("nothing was done: {invalid}"))
}
