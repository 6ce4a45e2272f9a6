//! Actions on many jobs: a preview of the affected jobs, then a bulk job that changes them.

use askama::Template;
use axum::response::Response;
use jiff::Timestamp;
use milepost_core::actions::Action as _;
use milepost_core::actions::job::{Inputs, JobAction};
use milepost_core::actions::select::{SelectError, select};
use milepost_core::bulk::operation::OperateJobs;
use milepost_core::ident::JobId;
use milepost_core::listing::JobRow;
use milepost_core::port::Store;
use milepost_core::search::JobFilter;
use milepost_core::state::JobState;
use milepost_core::transition::Verb;

use super::affected_jobs::{AffectedJobs, too_many};
use super::flash::Flash;
use super::form::{Action, Field, Sent, acting};
use super::format::{count, several};
use super::job_search::Search;
use super::page::{Drawn, Page, draw};
use crate::app::App;
use crate::operate_in_bulk;
use crate::problem::{Code, Problem};
use crate::redirect::own_path;

/// Maximum number of jobs that can be selected; a page shows fewer.
const TICKED_MAX: usize = 1_000;

/// The action and the selected jobs, as in the query of the preview and in its form.
struct JobSelection {
    action: JobAction,
    jobs: Chosen,
}

enum Chosen {
    /// Jobs that were selected individually.
    Some(Vec<JobId>),
    /// All jobs that match the filter.
    All(Box<Search>),
}

impl JobSelection {
    fn read(query: &str) -> Result<Self, String> {
        let fields: Vec<(String, String)> = form_urlencoded::parse(query.as_bytes()).into_owned().collect();
        let every = |name: &'static str| {
            fields.iter().filter(move |(of, _)| of == name).map(|(_, value)| value.as_str())
        };
        let action = every("operation").next().unwrap_or_default().parse::<JobAction>();
        let action = action.map_err(|unknown| format!("operation: {unknown}"))?;
        let jobs = if every("all").next().is_some() {
            Chosen::All(Box::new(Search::read(query)?))
        } else {
            Chosen::Some(every("id").filter_map(|id| id.parse().ok()).take(TICKED_MAX).collect())
        };
        Ok(Self { action, jobs })
    }

    /// Returns the jobs that the action would apply to now.
    async fn affected(&self, now: Timestamp, store: &dyn Store) -> Result<AffectedJobs, Problem> {
        match &self.jobs {
            Chosen::Some(ids) => Ok(AffectedJobs::of(self.action, ticked(ids, store).await?)),
            Chosen::All(search) => AffectedJobs::of_all(self.action, search.filter(now), store).await,
        }
    }

    /// Describes the lower time bound of the filter, if there is one.
    fn since(&self) -> Option<String> {
        match &self.jobs {
            Chosen::Some(_) => None,
            Chosen::All(search) => search.since_words(),
        }
    }

    /// Returns the list of these jobs, where the filter can be narrowed.
    fn list(&self) -> String {
        match &self.jobs {
            Chosen::Some(_) => "/jobs".to_owned(),
            Chosen::All(search) => format!("/jobs?{}", search.query(None)),
        }
    }

    /// Returns the jobs that existed at this time, grouped by the verb of the action. Jobs that the action does not apply to are
    /// omitted.
    async fn by_verb(&self, seen: Timestamp, store: &dyn Store) -> Result<Vec<(Verb, Vec<JobId>)>, Problem> {
        let jobs: Vec<(JobId, JobState)> = match &self.jobs {
            Chosen::Some(ids) => {
                ticked(ids, store).await?.into_iter().map(|job| (job.id, job.state)).collect()
            }
            Chosen::All(search) => {
                let filter = JobFilter { created_before: Some(seen), ..search.filter(seen) };
                select(filter, store).await.map_err(to_be_narrowed)?
            }
        };
        let mut by_verb: Vec<(Verb, Vec<JobId>)> = Vec::new();
        for (job, state) in jobs {
            let Some(verb) = self.action.verb(state) else { continue };
            match by_verb.iter_mut().find(|(of, _)| *of == verb) {
                Some((_, jobs)) => jobs.push(job),
                None => by_verb.push((verb, vec![job])),
            }
        }
        Ok(by_verb)
    }
}

/// Returns the jobs that still exist.
async fn ticked(ids: &[JobId], store: &dyn Store) -> Result<Vec<JobRow>, Problem> {
    let mut jobs = Vec::new();
    for &id in ids {
        jobs.extend(store.job(id).await?.map(|view| view.row));
    }
    Ok(jobs)
}

/// Replaces the message for too many jobs by one that refers to the filters of the job list.
fn to_be_narrowed(error: SelectError) -> Problem {
    match error {
        SelectError::TooMany => Problem::new(Code::TooManyJobs, format!("nothing was done: {}", too_many())),
        SelectError::Store(error) => error.into(),
    }
}

#[derive(Template)]
#[template(path = "change_preview.html")]
struct ChangePreview {
    page: Page,
    action: JobAction,
    /// The newest jobs that the action applies to, and their total number.
    can: Vec<JobRow>,
    total: usize,
    number: String,
    /// The number of jobs that the action does not apply to, by state.
    cannot: Vec<(&'static str, usize)>,
    /// A note on the accuracy of the number.
    notice: Option<String>,
    since: Option<String>,
    /// The list of the jobs.
    list: String,
    form: Option<Action>,
}

/// Shows the preview.
pub(super) async fn preview(app: App, page: Page) -> Drawn {
    let query = page.url.split_once('?').map_or("", |(_, query)| query);
    let wish = JobSelection::read(query).map_err(|words| Problem::new(Code::InvalidParameter, words))?;
    let affected = wish.affected(page.now, app.store.as_ref()).await?;
    Ok(draw(&ChangePreview {
        form: affected.is_possible().then(|| form(&page, wish.action, query, &affected)),
        action: wish.action,
        since: wish.since(),
        list: wish.list(),
        number: affected.number(),
        cannot: affected.cannot(),
        notice: affected.notice(),
        total: affected.total,
        can: affected.newest,
        page,
    }))
}

fn form(page: &Page, action: JobAction, query: &str, affected: &AffectedJobs) -> Action {
    let form = Action::new(page, "change", "/jobs/change", action)
        .asks(format!("{}: {}?", action.title(), affected.number()))
        .with(Field::hidden("chosen", query))
        .with(Field::hidden("seen", page.now.to_string()));
    match affected.exactly() {
        Some(of) => form.with(Field::hidden("of", of.to_string())),
        None => form,
    }
}

/// Starts the bulk jobs and redirects to them.
pub(super) async fn change(app: App, sent: Sent) -> Response {
    match start(&app, &sent).await {
        Ok((number, runs)) => {
            let page = match runs[..] {
                [run] => format!("/bulk/{run}"),
                _ => "/bulk".to_owned(),
            };
            Flash::done(format!("{number} are being changed; this page shows the progress")).on(&page)
        }
        Err(Refused { why, look_again: Some(preview) }) => why.on(own_path(&preview)),
        Err(Refused { why, look_again: None }) => sent.answer(Err(why)),
    }
}

/// The reason why not everything was done, and the page to show, if not the one that sent the form.
struct Refused {
    why: Flash,
    look_again: Option<String>,
}

impl<F: Into<Flash>> From<F> for Refused {
    fn from(why: F) -> Self {
        Self { why: why.into(), look_again: None }
    }
}

/// The refusal when a bulk job could not be started, after these were.
fn only_in_part(runs: &[JobId], problem: &Problem) -> Refused {
    let why = problem.words();
    match runs {
        [] => Flash::refused(why).into(),
        [first, ..] => Refused {
            why: Flash::refused(format!(
                "only a part of the jobs is being changed, as shown here; the others were not: {why}"
            )),
            look_again: Some(format!("/bulk/{first}")),
        },
    }
}

/// Starts a bulk job for each verb. Returns the total number of jobs and the ids of the bulk jobs.
async fn start(app: &App, sent: &Sent) -> Result<(String, Vec<JobId>), Refused> {
    let refuse = |words: String| Flash::refused(format!("nothing was done: {words}"));
    let chosen = sent.needed("chosen")?;
    let wish = JobSelection::read(chosen).map_err(refuse)?;
    let inputs = Inputs { delay: sent.wait()?, reason: Some(sent.reason()?), ..Inputs::default() };
    let seen = sent.read("seen")?.unwrap_or_else(Timestamp::now);
    let by_verb = wish.by_verb(seen, app.store.as_ref()).await?;
    if by_verb.is_empty() {
        return Err(refuse(format!("there are no more jobs to {}", wish.action)).into());
    }
    let total: usize = by_verb.iter().map(|(_, jobs)| jobs.len()).sum();
    // Never apply the action to more jobs than the preview showed. Fewer are fine: the others no longer need it.
    if let Some(of) = sent.read::<usize>("of")?.filter(|of| total > *of) {
        let (is, was) = (several(total as u64, "job", "jobs"), count(of));
        let why = refuse(format!("the action now applies to {is}, not to {was} as shown"));
        return Err(Refused { why, look_again: Some(format!("/jobs/change?{chosen}")) });
    }
    let store = acting(app, sent)?;
    let prepare = |verb, jobs| {
        let operation = wish.action.operation(verb, &inputs).map_err(Problem::from)?;
        Ok((verb, operate_in_bulk::job(&OperateJobs::new(&operation))?, jobs))
    };
    let prepared =
        by_verb.into_iter().map(|(verb, jobs)| prepare(verb, jobs)).collect::<Result<Vec<_>, Problem>>()?;
    let mut runs: Vec<JobId> = Vec::new();
    for (verb, job, jobs) in prepared {
        match operate_in_bulk::start(store.as_ref(), verb, &job, &jobs).await {
            Ok(run) => runs.push(run),
            Err(problem) => return Err(only_in_part(&runs, &problem)),
        }
    }
    Ok((several(total as u64, "job", "jobs"), runs))
}
