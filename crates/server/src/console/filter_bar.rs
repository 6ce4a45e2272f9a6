//! The filters of the list of jobs above its rows: a tab for each state, and the other filters as chips that can be removed.

use milepost_core::listing::QueueKinds;
use milepost_core::state::JobState;

use super::format::{count, query};
use super::job_search::Search;

/// A state as a tab.
pub(super) struct Tab {
    pub(super) label: &'static str,
    /// The number of jobs, if it is known. Ended jobs are not counted.
    pub(super) jobs: Option<String>,
    pub(super) url: String,
    pub(super) is_current: bool,
}

/// A filter that is set.
pub(super) struct Chip {
    pub(super) name: &'static str,
    pub(super) value: String,
    /// The list without this filter.
    pub(super) url: String,
}

/// Returns whether the tabs have counts. They consider a filter by queue, and no others.
pub(super) fn is_countable(search: &Search) -> bool {
    search.fields().iter().all(|(name, value)| value.is_empty() || matches!(*name, "state" | "queue"))
}

/// Returns the tabs of all states, with counts if they [can have them](is_countable).
pub(super) fn tabs(search: &Search, queues: Option<&[QueueKinds]>) -> Vec<Tab> {
    let queues = queues.filter(|_| is_countable(search));
    let all =
        Tab { label: "all", jobs: None, url: url(search, "state", ""), is_current: search.state().is_none() };
    let of_state = |&state: &JobState| Tab {
        label: state.as_str(),
        jobs: queues.filter(|_| !state.is_ended()).map(|queues| jobs(queues, search.queue(), state)),
        url: url(search, "state", state.as_str()),
        is_current: search.state() == Some(state),
    };
    std::iter::once(all).chain(JobState::ALL.iter().map(of_state)).collect()
}

/// Returns the filters that are set, besides the state.
pub(super) fn chips(search: &Search) -> Vec<Chip> {
    let fields = search.fields();
    let set = fields.into_iter().filter(|(name, value)| *name != "state" && !value.is_empty());
    set.map(|(name, value)| Chip { name, value: value.to_owned(), url: url(search, name, "") }).collect()
}

fn jobs(queues: &[QueueKinds], queue: Option<&str>, state: JobState) -> String {
    let counted = queues.iter().filter(|its| queue.is_none_or(|queue| queue == its.name));
    let jobs: i64 = counted
        .flat_map(|its| &its.counts)
        .filter(|count| count.state == state)
        .map(|count| count.jobs)
        .sum();
    count(jobs)
}

/// Returns the address of the list with another value of this filter.
fn url(search: &Search, changed: &str, value: &str) -> String {
    let fields = search.fields().map(|(name, its)| (name, if name == changed { value } else { its }));
    match query(&fields) {
        query if query.is_empty() => "/jobs".to_owned(),
        query => format!("/jobs?{query}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_chip_removes_its_filter_and_a_tab_keeps_the_others() {
        let search = Search::read("state=failed&kind=mail&queue=post&created=1d&before=x").unwrap();
        let chips: Vec<String> =
            chips(&search).into_iter().map(|chip| format!("{} {}", chip.name, chip.url)).collect();
        assert_eq!(
            chips,
            [
                "kind /jobs?state=failed&queue=post&created=1d",
                "queue /jobs?state=failed&kind=mail&created=1d",
                "created /jobs?state=failed&kind=mail&queue=post",
            ]
        );
        let tabs = tabs(&search, Some(&[]));
        assert_eq!(tabs[0].url, "/jobs?kind=mail&queue=post&created=1d");
        let current: Vec<&str> = tabs.iter().filter(|tab| tab.is_current).map(|tab| tab.label).collect();
        assert_eq!((current, tabs.iter().all(|tab| tab.jobs.is_none())), (vec!["failed"], true));
    }

    #[test]
    fn unfinished_jobs_are_counted_by_state_and_queue() {
        use milepost_core::listing::KindCount;
        let of = |name: &str, jobs| QueueKinds {
            name: name.to_owned(),
            paused_at: None,
            counts: vec![KindCount {
                kind: None,
                state: JobState::Failed,
                jobs,
                due: 0,
                oldest_due_at: None,
            }],
        };
        let queues = [of("post", 2), of("mail", 1_000)];
        let failed = |search: &str| {
            let tabs = tabs(&Search::read(search).unwrap(), Some(&queues));
            let number = |label| tabs.iter().find(|tab| tab.label == label).unwrap().jobs.clone();
            (number("failed"), number("succeeded"))
        };
        assert_eq!(failed(""), (Some("1,002".to_owned()), None));
        assert_eq!(failed("queue=post"), (Some("2".to_owned()), None));
        assert_eq!(failed("error=timeout"), (None, None));
    }
}
