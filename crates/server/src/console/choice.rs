//! Doing something to many jobs at once: first it is shown what would happen, then it is done.

use std::collections::BTreeMap;
use std::str::FromStr;
use std::sync::Arc;

use askama::Template;
use axum::extract::State;
use axum::response::Response;
use futures::StreamExt;
use milepost_core::ident::JobId;
use milepost_core::listing::JobRow;
use milepost_core::state::JobState;

use super::act::{Action, Field, Sent, acting};
use super::deed::{Deed, told, wait};
use super::flash::Flash;
use super::jobs::Search;
use super::page::{Drawn, Page, Trouble, draw};
use super::words::{count, several};
use crate::app::App;
use crate::problem::Problem;

/// How many jobs are changed at once at most.
const JOBS_MAX: usize = 1_000;
/// How many are under way at the same time.
const AT_ONCE: usize = 8;
/// How many are shown before.
const SHOWN: usize = 20;

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
    /// Whether there are more than are changed at once.
    more: bool,
    action: Option<Action>,
}

/// Shows what would happen.
pub(super) async fn preview(State(app): State<App>, page: Page) -> Drawn {
    let query = page.url.split_once('?').map_or("", |(_, query)| query).to_owned();
    let fields: Vec<(String, String)> = form_urlencoded::parse(query.as_bytes()).into_owned().collect();
    let every =
        |name: &'static str| fields.iter().filter(move |(of, _)| of == name).map(|(_, value)| value.as_str());
    let deed = every("deed").next().unwrap_or_default();
    let refuse = |code, words: String| Trouble(Problem::bad_request(code, words));
    let deed = Deed::from_str(deed).map_err(|error| refuse("invalid_parameter", format!("deed: {error}")))?;
    let (jobs, more) = if every("all").next().is_some() {
        let search = Search::read(&query).map_err(|words| refuse("invalid_parameter", words))?;
        let found = search.look(JOBS_MAX, app.store.as_ref()).await?;
        (found.jobs.into_iter().map(|job| job.row).collect(), found.next.is_some())
    } else {
        let mut jobs = Vec::new();
        for id in every("id").filter_map(|id| id.parse::<JobId>().ok()).take(JOBS_MAX) {
            jobs.extend(app.store.job(id).await?.map(|view| view.row));
        }
        (jobs, false)
    };
    let (can, stay): (Vec<JobRow>, Vec<JobRow>) =
        jobs.into_iter().partition(|job| deed.verb(job.state).is_some());
    let mut cannot: BTreeMap<JobState, usize> = BTreeMap::new();
    stay.iter().for_each(|job| *cannot.entry(job.state).or_default() += 1);
    let mut can = can;
    let (total, action) = (can.len(), action(&page, deed, &can));
    can.truncate(SHOWN);
    let cannot = cannot.into_iter().map(|(state, number)| (state.as_str(), number)).collect();
    Ok(draw(&Choice {
        number: several(total as u64, "job", "jobs"),
        page,
        deed,
        can,
        total,
        cannot,
        more,
        action,
    }))
}

fn action(page: &Page, deed: Deed, jobs: &[JobRow]) -> Option<Action> {
    if jobs.is_empty() || !page.viewer.operates {
        return None;
    }
    let ids: Vec<String> = jobs.iter().map(|job| job.id.to_string()).collect();
    let number = several(jobs.len() as u64, "job", "jobs");
    let action = Action::new(page, "change", "/jobs/change", deed.label())
        .asks(format!("{}: {number}?", deed.label()), deed.effect())
        .with(Field::hidden("deed", deed.name()))
        .with(Field::hidden("ids", ids.join(" ")))
        .with_reason();
    let action = if deed == Deed::Snooze {
        action.with(Field {
            required: true,
            ..Field::shown("wait", "For how long", "10m", "90s, 10m, 2h or 1d")
        })
    } else {
        action
    };
    Some(if deed.is_dangerous() { action.danger() } else { action })
}

/// Does it, and says how many went which way.
pub(super) async fn change(State(app): State<App>, sent: Sent) -> Response {
    let done = all(&app, &sent).await;
    sent.answer(done)
}

async fn all(app: &App, sent: &Sent) -> Result<String, Flash> {
    let (reason, deed) = (sent.reason()?, sent.needed("deed")?);
    let deed = Deed::from_str(deed).map_err(Flash::refused)?;
    let wait = sent.field("wait").map(wait).transpose()?;
    let ids: Vec<JobId> = sent.needed("ids")?.split_whitespace().filter_map(|id| id.parse().ok()).collect();
    if ids.len() > JOBS_MAX {
        return Err(Flash::refused(format!(
            "nothing was done: at most {} jobs at once",
            count(JOBS_MAX as u64)
        )));
    }
    let store = acting(app, sent);
    let doing = ids.into_iter().map(|id| {
        let (store, reason) = (Arc::clone(&store), reason.clone());
        async move { deed.to(id, wait, &reason, store.as_ref()).await }
    });
    let ends: Vec<Result<_, Flash>> = futures::stream::iter(doing).buffer_unordered(AT_ONCE).collect().await;
    let mut tally: BTreeMap<String, usize> = BTreeMap::new();
    let (mut refused, mut why) = (0, None);
    for end in ends {
        match end {
            Ok(operated) => *tally.entry(told(operated)).or_default() += 1,
            Err(flash) => (refused, why) = (refused + 1, Some(flash.words)),
        }
    }
    let mut words: Vec<String> =
        tally.into_iter().map(|(word, number)| format!("{} {word}", count(number as u64))).collect();
    if let Some(why) = why {
        words.push(format!("{} refused, one since {why}", count(refused)));
    }
    if words.is_empty() {
        Err(Flash::refused("nothing was done: no job was named"))
    } else {
        Ok(words.join("; "))
    }
}
