//! The preview of a rerun.

use anyhow::Result;
use milepost_core::batch::listing::{BatchView, TaskFilter};
use milepost_core::batch::rerun::{Change, Chosen, Rerun};
use milepost_core::batch::subject::Subject;
use milepost_core::dag::checked::Dag;
use milepost_core::port::BatchStore;

use super::find;
use super::words;

/// The number of names in a preview.
const NAMES: usize = 12;

/// Plans a rerun in the version of the batch.
pub(super) async fn pinned(chosen: &Chosen, subject: &Subject, store: &dyn BatchStore) -> Result<Rerun> {
    known(chosen, subject)?;
    let again = find::all_tasks(subject.row.id, chosen.filter(subject)?, store).await?;
    let inside = chosen.inside(subject, None, store).await?;
    Ok(Rerun::pinned(chosen, subject, again, inside)?)
}

/// Plans a rerun in the latest version, if that differs.
pub(super) async fn latest(chosen: &Chosen, subject: &Subject, store: &dyn BatchStore) -> Result<Rerun> {
    subject.dag()?;
    let (to, definition) = store.dag(&subject.row.dag, None).await?;
    if to.version == subject.row.version {
        return pinned(chosen, subject, store).await;
    }
    let then = Subject { row: subject.row.clone(), dag: Some(Dag::check(definition)?) };
    known(chosen, &then)?;
    let tasks = find::all_tasks(subject.row.id, TaskFilter::default(), store).await?;
    let inside = chosen.inside(subject, Some(then.dag()?), store).await?;
    Ok(Rerun::in_version(chosen, subject, (to, then.dag()?.clone()), tasks, inside)?)
}

/// Checks that the named tasks exist; the error suggests similar names.
fn known(chosen: &Chosen, subject: &Subject) -> Result<()> {
    match chosen {
        Chosen::Failed => Ok(()),
        Chosen::Tasks(keys) | Chosen::Downstream(keys) => {
            keys.iter().try_for_each(|key| find::task(subject, key).map(drop))
        }
    }
}

/// Describes which tasks will run, and their current states.
pub(super) fn preview(plan: &Rerun, row: &BatchView) -> String {
    let change = plan.change.as_ref().map(|change| change_preview(change, row)).unwrap_or_default();
    let (counts, total) = (plan.counts(), words::count(row.counts.total()));
    let inside = counts.total() - plan.again.len() as u64;
    let tasks = match inside {
        0 => format!("{} of {total} in batch {}", words::tasks(counts.total()), row.id),
        inside => format!(
            "{} in batch {}, {} of them in inner batches,",
            words::tasks(counts.total()),
            row.id,
            words::count(inside)
        ),
    };
    let resumed: Vec<&str> = plan.resumed().collect();
    let resumed = match resumed.as_slice() {
        [] => String::new(),
        paths => format!("\nstopped inner batches that are resumed: {}", words::some(paths, NAMES)),
    };
    if counts.total() == 0 {
        return format!("{change}{tasks} will run again{resumed}");
    }
    let active = match counts.active {
        active if active > 0 && plan.change.is_none() => format!(
            "\n{} running: a job cannot be rerun while it runs; `milepost batch abort` stops it",
            words::tasks(active)
        ),
        _ => String::new(),
    };
    let keys = words::some(&plan.keys(), NAMES);
    format!("{change}{tasks} will run again: {keys}\nnow {}{active}{resumed}", words::counts(&counts))
}

fn change_preview(change: &Change, row: &BatchView) -> String {
    let Change { to, new, gone, stays, .. } = change;
    let (from, name) = (format!("version {} ({})", row.number, words::short(row.version)), &to.dag);
    let to = format!("version {} ({})", to.number, words::short(to.version));
    let mut lines = vec![format!("the batch moves from {from} to {to} of {name}")];
    let mut tell = |keys: &[String], what: &str| {
        if !keys.is_empty() {
            let tasks = words::tasks(keys.len() as u64);
            lines.push(format!("{tasks} {what}: {}", words::some(keys, NAMES)));
        }
    };
    tell(new, "new, to run after their predecessors");
    tell(gone, "removed, and canceled unless they have ended");
    tell(stays, "defined differently, but unchanged because they have ended");
    if row.counts.active > 0 {
        let active = words::tasks(row.counts.active);
        lines.push(format!(
            "{active} running: the batch cannot move while jobs run; `milepost batch abort` stops them"
        ));
    }
    lines.iter().map(|line| format!("{line}\n")).collect()
}
