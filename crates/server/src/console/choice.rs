//! Doing something to many jobs at once: first it is shown what would happen, then a bulk job does it.

use std::collections::BTreeMap;
use std::str::FromStr;
use std::time::Duration;

use askama::Template;
use axum::extract::State;
use axum::response::Response;
use jiff::Timestamp;
use milepost_core::bulk::operation::OperateJobs;
use milepost_core::ident::JobId;
use milepost_core::listing::JobRow;
use milepost_core::port::Store;
use milepost_core::search::JobSearch;
use milepost_core::state::JobState;
use milepost_core::transition::Verb;

use super::act::{Action, Field, Sent, acting};
use super::deed::{Deed, wait};
use super::flash::Flash;
use super::jobs::Search;
use super::page::{Drawn, Page, draw};
use super::words::{count, several};
use crate::app::App;
use crate::destination::own_path;
use crate::many;
use crate::problem::Problem;

/// How many jobs are looked at before.
const LOOKED: usize = 1_000;
/// How long they are looked for.
const PATIENCE: Duration = Duration::from_millis(500);
/// How many are shown before.
const SHOWN: usize = 20;

/// What is to be done, and to which jobs: what the query of the preview says, and its form says again.
struct Wish {
    deed: Deed,
    jobs: Chosen,
}

enum Chosen {
    /// Those that were ticked.
    Some(Vec<JobId>),
    /// All that are found.
    All(Box<Search>),
}

impl Wish {
    fn read(query: &str) -> Result<Self, String> {
        let fields: Vec<(String, String)> = form_urlencoded::parse(query.as_bytes()).into_owned().collect();
        let every = |name: &'static str| {
            fields.iter().filter(move |(of, _)| of == name).map(|(_, value)| value.as_str())
        };
        let deed = Deed::from_str(every("deed").next().unwrap_or_default());
        let deed = deed.map_err(|error| format!("deed: {error}"))?;
        let jobs = if every("all").next().is_some() {
            Chosen::All(Box::new(Search::read(query)?))
        } else {
            Chosen::Some(every("id").filter_map(|id| id.parse().ok()).take(LOOKED).collect())
        };
        Ok(Self { deed, jobs })
    }

    /// The jobs, the newest if there are many, and whether there are more.
    async fn look(&self, now: Timestamp, store: &dyn Store) -> Result<(Vec<JobRow>, bool), Problem> {
        match &self.jobs {
            Chosen::Some(ids) => {
                let mut jobs = Vec::new();
                for &id in ids {
                    jobs.extend(store.job(id).await?.map(|view| view.row));
                }
                Ok((jobs, false))
            }
            Chosen::All(search) => {
                let found = search.look(LOOKED, now, PATIENCE, store).await?;
                Ok((found.jobs.into_iter().map(|job| job.row).collect(), found.next.is_some()))
            }
        }
    }

    /// All of them that were there at this time, by the verb that does it to them; those that stay as they are are left out.
    async fn by_verb(&self, seen: Timestamp, store: &dyn Store) -> Result<Vec<(Verb, Vec<JobId>)>, Problem> {
        let jobs: Vec<(JobId, JobState)> = match &self.jobs {
            Chosen::Some(_) => {
                self.look(seen, store).await?.0.into_iter().map(|job| (job.id, job.state)).collect()
            }
            Chosen::All(search) => {
                let search = JobSearch { created_before: Some(seen), ..search.of_store(seen) };
                many::find(store, search).await?
            }
        };
        let mut by_verb: Vec<(Verb, Vec<JobId>)> = Vec::new();
        for (job, state) in jobs {
            let Some(verb) = self.deed.verb(state) else { continue };
            match by_verb.iter_mut().find(|(of, _)| *of == verb) {
                Some((_, jobs)) => jobs.push(job),
                None => by_verb.push((verb, vec![job])),
            }
        }
        Ok(by_verb)
    }
}

#[derive(Template)]
#[template(path = "choice.html")]
struct Choice {
    page: Page,
    deed: Deed,
    /// What can be done and to how many.
    can: Vec<JobRow>,
    total: usize,
    number: String,
    /// Those that stay as they are, by state.
    cannot: Vec<(&'static str, usize)>,
    /// Whether there are more than were looked at.
    more: bool,
    action: Option<Action>,
}

/// Shows what would happen.
pub(super) async fn preview(State(app): State<App>, page: Page) -> Drawn {
    let query = page.url.split_once('?').map_or("", |(_, query)| query);
    let wish = Wish::read(query).map_err(|words| Problem::bad_request("invalid_parameter", words))?;
    let (jobs, more) = wish.look(page.now, app.store.as_ref()).await?;
    let deed = wish.deed;
    let (mut can, stay): (Vec<JobRow>, Vec<JobRow>) =
        jobs.into_iter().partition(|job| deed.verb(job.state).is_some());
    let mut cannot: BTreeMap<JobState, usize> = BTreeMap::new();
    stay.iter().for_each(|job| *cannot.entry(job.state).or_default() += 1);
    let total = can.len();
    let and_more = if more { " and more" } else { "" };
    let number = format!("{}{and_more}", several(total as u64, "job", "jobs"));
    can.truncate(SHOWN);
    Ok(draw(&Choice {
        action: (total > 0 || more).then(|| action(&page, deed, &number, query, (!more).then_some(total))),
        cannot: cannot.into_iter().map(|(state, number)| (state.as_str(), number)).collect(),
        page,
        deed,
        can,
        total,
        number,
        more,
    }))
}

/// `of`: to how many jobs it is done, if that is known.
fn action(page: &Page, deed: Deed, number: &str, query: &str, of: Option<usize>) -> Action {
    let action = Action::new(page, "change", "/jobs/change", deed.label())
        .asks(format!("{}: {number}?", deed.label()), deed.effect())
        .with(Field::hidden("chosen", query))
        .with(Field::hidden("seen", page.now.to_string()))
        .with_reason();
    let action = match of {
        Some(of) => action.with(Field::hidden("of", of.to_string())),
        None => action,
    };
    let action = if deed == Deed::Snooze {
        action.with(Field {
            required: true,
            ..Field::shown("wait", "For how long", "10m", "90s, 10m, 2h or 1d")
        })
    } else {
        action
    };
    if deed.is_dangerous() { action.danger() } else { action }
}

/// Starts the bulk job, and leads to it.
pub(super) async fn change(State(app): State<App>, sent: Sent) -> Response {
    match start(&app, &sent).await {
        Ok((number, runs)) => {
            let page = match runs[..] {
                [run] => format!("/bulk/{run}"),
                _ => "/bulk".to_owned(),
            };
            Flash::done(format!("{number} are changed one after the other; this tells how far it is"))
                .on(&page)
        }
        Err(Refused { why, look_again: Some(preview) }) => why.on(own_path(&preview)),
        Err(Refused { why, look_again: None }) => sent.answer(Err(why)),
    }
}

/// Why nothing was done, and where to look at it anew if that is what is needed.
struct Refused {
    why: Flash,
    look_again: Option<String>,
}

impl<F: Into<Flash>> From<F> for Refused {
    fn from(why: F) -> Self {
        Self { why: why.into(), look_again: None }
    }
}

/// To how many jobs it is done, and by which bulk jobs: one for each verb that it is.
async fn start(app: &App, sent: &Sent) -> Result<(String, Vec<JobId>), Refused> {
    let reason = sent.reason()?;
    let refuse = |words: String| Flash::refused(format!("nothing was done: {words}"));
    let chosen = sent.needed("chosen")?;
    let wish = Wish::read(chosen).map_err(refuse)?;
    let wait = sent.field("wait").map(wait).transpose()?;
    let seen = sent.read("seen")?.unwrap_or_else(Timestamp::now);
    let by_verb = wish.by_verb(seen, app.store.as_ref()).await?;
    if by_verb.is_empty() {
        return Err(refuse(format!("there is no job to {} any more", wish.deed)).into());
    }
    let total: usize = by_verb.iter().map(|(_, jobs)| jobs.len()).sum();
    // What was asked for is what was seen. Fewer do no harm: those that are left out need it no more.
    if let Some(of) = sent.read::<usize>("of")?.filter(|of| total > *of) {
        let (is, was) = (several(total as u64, "job", "jobs"), count(of));
        let why = refuse(format!("it would be done to {is} now, not to {was} as it was shown"));
        return Err(Refused { why, look_again: Some(format!("/jobs/change?{chosen}")) });
    }
    let store = acting(app, sent);
    let mut runs = Vec::new();
    for (verb, jobs) in by_verb {
        let operation = OperateJobs::new(&wish.deed.operation(verb, wait, &reason)?);
        runs.push(many::start(store.as_ref(), &operation, &jobs).await?);
    }
    Ok((several(total as u64, "job", "jobs"), runs))
}
