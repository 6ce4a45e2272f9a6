//! `milepost migrate`.

use anyhow::Result;
use clap::Args;
use milepost_cli_support::output::{self, Outcome};
use milepost_cli_support::store::{self, StoreAddress};
use milepost_core::schema::MigrationPlan;
use serde_json::json;

pub(crate) const EXAMPLES: &str = "\
Examples:
  milepost migrate --plan
  milepost migrate
  milepost --store sqlite:/var/lib/app/jobs.db migrate
  milepost --store postgres://app@db.internal/app migrate

It is safe to run the command again, or on several machines at the same time,
while programs use the store. On PostgreSQL, it waits at most half a second for
a lock, because other statements wait behind it; then it rolls back and tries
again, for five minutes.

--plan shows which older programs continue to work with the store. An older
binary changes nothing in a newer store.";

/// What to do.
#[derive(Debug, Args)]
pub(crate) struct MigrateArgs {
    /// Only show the changes, and which programs can use the store afterwards
    #[arg(long)]
    plan: bool,
    /// Print the plan as JSON
    #[arg(long, requires = "plan")]
    json: bool,
}

pub(crate) async fn run(address: &StoreAddress, args: &MigrateArgs) -> Result<Outcome> {
    if args.plan {
        let plan = store::plan_migration(address).await?;
        output::heard_or_not(if args.json { output::json(&document(&plan)) } else { told(address, &plan) })?;
        return Ok(Outcome::Done);
    }
    let steps = store::migrate(address).await?;
    if steps.from == steps.to {
        output::change(format_args!("{address} is at schema version {} already", steps.to))?;
    } else {
        output::change(format_args!(
            "{address} migrated from schema version {} to {}",
            steps.from, steps.to
        ))?;
    }
    Ok(Outcome::Done)
}

fn told(address: &StoreAddress, plan: &MigrationPlan) -> Result<()> {
    let MigrationPlan { found, known, steps, compatible_from } = plan;
    output::line(format_args!("{address} has schema version {found}; this binary needs {known}"))?;
    for step in steps {
        output::line(format_args!("  {}  {}: {}", step.version, step.name, step.summary))?;
    }
    if found > known {
        output::line("a newer binary migrated the store, and this one can use it: nothing to do")?;
    } else if steps.is_empty() {
        output::line("nothing to do")?;
    } else if *found > 0 && compatible_from <= found {
        output::line(format_args!(
            "programs of schema version {compatible_from} or newer continue to work, during and after the migration"
        ))?;
    } else if *found > 0 {
        output::line(format_args!(
            "stop programs older than schema version {compatible_from} first: they do not work with the migrated store"
        ))?;
    }
    Ok(())
}

fn document(plan: &MigrationPlan) -> serde_json::Value {
    let steps = plan
        .steps
        .iter()
        .map(|step| json!({ "version": step.version, "name": step.name, "summary": step.summary }));
    json!({
        "found": plan.found,
        "known": plan.known,
        "compatible_from": plan.compatible_from,
        "steps": steps.collect::<Vec<_>>(),
    })
}
