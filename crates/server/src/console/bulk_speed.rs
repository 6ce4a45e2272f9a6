//! The limits of a run's speed, and the form that changes them.

use milepost_core::actions::bulk_run::RunChange;
use milepost_core::bulk::chunk::{Load, Sizing};
use milepost_core::bulk::definition::Definition;
use milepost_core::bulk::listing::BulkView;
use milepost_core::bulk::settings::Settings;
use milepost_core::duration::exact;

use super::form::{Action, Field};
use super::format::count;
use super::page::Page;

/// Returns the limits of a bulk job, or of a run, with their names.
pub(super) fn facts(load: Load, sizing: &Sizing) -> Vec<(&'static str, String)> {
    let chunks = format!(
        "about {} each, {} to {} rows",
        exact(sizing.target),
        count(sizing.rows_min),
        count(sizing.rows_max)
    );
    let mut facts = vec![("chunks", chunks)];
    facts.extend(load.rows_per_s.map(|rate| ("rate", format!("at most {rate} rows/s"))));
    if load.duty < 1.0 {
        facts.push(("duty cycle", format!("at most {:.1} % of the time", load.duty * 100.0)));
    }
    facts
}

/// Describes the limits that apply to a run now: those that operators have set, else those of the bulk job. `None` if nothing is known,
/// because the bulk job was removed and no operator has set a limit.
pub(super) fn in_force(set: &Settings, definition: Option<&Definition>) -> Option<String> {
    let changed = *set != Settings::default();
    let (load, sizing) = definition.map(|its| (its.load, its.sizing)).unwrap_or_default();
    let sizes_known = definition.is_some()
        || set.chunk_ms.is_some()
        || set.chunk_rows_min.is_some()
        || set.chunk_rows_max.is_some();
    let limits: Vec<String> = facts(set.load(load), &set.sizing(sizing))
        .into_iter()
        .filter(|(name, _)| *name != "chunks" || sizes_known)
        .map(|(name, limit)| if name == "chunks" { format!("chunks of {limit}") } else { limit })
        .collect();
    let by = if changed { " (changed by an operator)" } else { "" };
    (definition.is_some() || changed).then(|| format!("{}{by}", limits.join(", ")))
}

/// The form that changes the limits of a run.
pub(super) fn form(view: &BulkView, page: &Page) -> Action {
    let (id, set) = (view.id, &view.settings);
    let field = |name: &'static str, label: &'static str, value: Option<String>| {
        Field::shown(name, label, value.unwrap_or_default(), "as the bulk job defines")
    };
    let text = |value: Option<u32>| value.map(|value| value.to_string());
    let duty = "Duty cycle: the maximum share of the time for chunks, 0 to 1";
    Action::new(page, format!("set-{id}"), format!("/bulk/{id}/set"), RunChange::Set)
        .asks(format!("Change the speed of {}?", view.name))
        .with(field("rate", "Maximum rows per second", set.rows_per_s.map(|rate| rate.to_string())))
        .with(field("duty", duty, set.duty.map(|duty| duty.to_string())))
        .with(field("chunk_ms", "Target duration of a chunk, ms", set.chunk_ms.map(|ms| ms.to_string())))
        .with(field("rows_min", "Minimum rows per chunk", text(set.chunk_rows_min)))
        .with(field("rows_max", "Maximum rows per chunk", text(set.chunk_rows_max)))
        .with(Field::shown("priority", "Priority in its group, 1 to 4", String::new(), "unchanged"))
}
