//! `milepost migrate`.

use anyhow::Result;
use milepost_cli_support::output::{self, Outcome};
use milepost_cli_support::store::{self, StoreAddress};

pub(crate) const EXAMPLES: &str = "\
Examples:
  milepost migrate
  milepost --store sqlite:/var/lib/app/jobs.db migrate
  milepost --store postgres://app@db.internal/app migrate

It is safe to run the command again, or on several machines at the same time.";

pub(crate) async fn run(address: &StoreAddress) -> Result<Outcome> {
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
