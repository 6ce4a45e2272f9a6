//! The console: pages rendered on the server and refreshed by a small script. Each page has its own module.
//!
//! Pages read from the store's ports, as the API does. Changes are forms that ask for a reason ([`form`]) and redirect to their
//! page, which shows the result ([`flash`]). Slow counts are cached ([`cached_counts`]).

mod affected_jobs;
mod alert;
mod alert_facts;
mod alerts;
mod assets;
mod audit;
mod batch;
mod batch_tasks;
mod batches;
mod bulk;
mod bulk_definition;
mod bulk_speed;
mod bulks;
pub(crate) mod cached_counts;
mod change_jobs;
mod charts;
#[cfg(test)]
mod contrast;
mod dag;
mod dead_letters;
mod edit_job;
mod error_page;
mod event_alerts;
mod events;
mod failing;
mod filter_bar;
mod flash;
mod form;
mod format;
mod graph;
mod in_progress;
mod job;
mod job_search;
mod jobs;
mod kinds;
mod limits;
mod next_ticks;
mod overview;
pub(crate) mod paces;
mod page;
mod queues;
mod rerun;
mod retention;
mod schedule;
mod schedule_form;
mod schedules;
pub(crate) mod series;
mod settings;
mod silence;
mod start;
mod state_bar;
mod state_diagram;
mod status;
mod sublist;
mod time_input;
mod timeline;
mod typed_fields;
mod unserved;
mod visible_text;
mod waits;
mod workers;

use axum::http::Method;
use axum::routing::{get, post};
use milepost_core::token::Role;

use crate::access::Needed;
use crate::pages::Pages;
use crate::reference;
pub(crate) use assets::url as asset;
pub(crate) use cached_counts::PAGE_WAIT;
pub(crate) use error_page::explain;
pub(crate) use flash::{carry, is_refused_form};
pub(crate) use form::{look_anew, multipart};
pub(crate) use page::{Drawn, Page, draw};
pub use status::{alerts, status};

/// Access to pages that only show data.
const VIEWER: Needed = Needed::Role(Role::Viewer);
/// Access to pages and forms that change data.
const OPERATOR: Needed = Needed::Role(Role::Operator);

/// Returns the routes of all pages and forms.
pub(crate) fn routes() -> Pages {
    Pages::default()
        .add_own(Method::GET, "/", VIEWER, get(overview::show))
        .add(Method::POST, "/alerts/silence", OPERATOR, post(silence::silence))
        .add(Method::POST, "/alerts/unsilence", OPERATOR, post(silence::unsilence))
        .add_own(Method::GET, "/series.json", VIEWER, get(charts::get))
        .add_own(Method::GET, "/series-recent.json", VIEWER, get(charts::recent))
        .add_own(Method::GET, "/jobs", VIEWER, get(jobs::list))
        .add_own(Method::POST, "/jobs/create", OPERATOR, post(start::create_job))
        .add_own(Method::GET, "/jobs/change", OPERATOR, get(change_jobs::preview))
        .add_own(Method::POST, "/jobs/change", OPERATOR, post(change_jobs::change))
        .add_own(Method::GET, "/jobs/{id}", VIEWER, get(job::show))
        .add_own(Method::POST, "/jobs/{id}/reveal", OPERATOR, post(job::reveal))
        .add_own(Method::POST, "/jobs/{id}/operate", OPERATOR, post(job::operate))
        .add_own(Method::POST, "/jobs/{id}/edit", OPERATOR, post(edit_job::edit))
        .add_own(Method::GET, "/queues", VIEWER, get(queues::list))
        .add_own(Method::POST, "/queues/set", OPERATOR, post(queues::set))
        .add_own(Method::POST, "/limits/set", OPERATOR, post(limits::set))
        .add_own(Method::POST, "/limits/put", OPERATOR, post(limits::put))
        .add_own(Method::POST, "/limits/remove", OPERATOR, post(limits::remove))
        .add(Method::POST, "/retention/set", OPERATOR, post(retention::set))
        .add(Method::POST, "/retention/remove", OPERATOR, post(retention::remove))
        .add_own(Method::GET, "/kinds", VIEWER, get(kinds::list))
        .add_own(Method::GET, "/kinds/{name}", VIEWER, get(kinds::show))
        .add_own(Method::GET, "/workers", VIEWER, get(workers::list))
        .add_own(Method::GET, "/schedules", VIEWER, get(schedules::list))
        .add_own(Method::GET, "/schedules/{name}", VIEWER, get(schedule::show))
        .add_own(Method::POST, "/schedule/operate", OPERATOR, post(schedules::operate))
        .add_own(Method::POST, "/schedule/save", OPERATOR, post(schedule_form::save))
        .add_own(Method::POST, "/schedule/remove", OPERATOR, post(schedule_form::remove))
        .add_own(Method::GET, "/bulk", VIEWER, get(bulks::list))
        .add_own(Method::GET, "/bulk-definitions/{name}", VIEWER, get(bulk_definition::show))
        .add_own(Method::POST, "/bulk/start", OPERATOR, post(start::start_run))
        .add_own(Method::POST, "/bulk/dry-run", OPERATOR, post(start::start_dry_run))
        .add_own(Method::GET, "/bulk/{id}", VIEWER, get(bulk::show))
        .add_own(Method::POST, "/bulk/{id}/operate", OPERATOR, post(bulk::operate))
        .add_own(Method::POST, "/bulk/{id}/set", OPERATOR, post(bulk::set))
        .add_own(Method::POST, "/bulk/{id}/retry-failures", OPERATOR, post(bulk::retry_failures))
        .add_own(Method::GET, "/batches", VIEWER, get(batches::list))
        .add_own(Method::POST, "/batches/start", OPERATOR, post(start::start_a_batch))
        .add_own(Method::GET, "/batches/{id}", VIEWER, get(batch::show))
        .add_own(Method::GET, "/dags/{name}", VIEWER, get(dag::show))
        .add_own(Method::POST, "/batches/{id}/operate", OPERATOR, post(batch::operate))
        .add_own(Method::POST, "/batches/{id}/signal", OPERATOR, post(waits::signal))
        .add_own(Method::GET, "/batches/{id}/rerun", OPERATOR, get(rerun::preview))
        .add_own(Method::POST, "/batches/{id}/rerun", OPERATOR, post(rerun::rerun))
        .add(Method::GET, "/events", VIEWER, get(events::list))
        .add(Method::POST, "/events/subscription", OPERATOR, post(events::operate))
        .add(Method::POST, "/events/replay", OPERATOR, post(events::replay))
        .add(Method::POST, "/events/parked", OPERATOR, post(events::change_parked))
        .add_own(Method::GET, "/dead-letters", VIEWER, get(dead_letters::list))
        .add(Method::POST, "/dead-letters/event", OPERATOR, post(dead_letters::change_event))
        .add(Method::POST, "/dead-letters/inbox", OPERATOR, post(dead_letters::change_letter))
        .add_own(Method::GET, "/audit", OPERATOR, get(audit::list))
        .add(Method::GET, "/settings", VIEWER, get(settings::show))
        .add_own(Method::GET, "/reference", VIEWER, get(reference::show))
        .add(Method::GET, "/assets/{edition}/{name}", Needed::Nothing, get(assets::get))
        .compressed()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whatever_changes_something_is_for_operators() {
        for (method, path, needed) in routes().needs() {
            let only_looks = method == Method::GET
                && path != "/audit"
                && !path.ends_with("/change")
                && !path.ends_with("/rerun");
            assert_eq!(needed != OPERATOR, only_looks, "{method} {path}");
        }
    }
}
