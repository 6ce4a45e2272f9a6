//! `milepost alerts`: lists and silences alerts, and tests their targets.

use anyhow::{Context, Result, bail};
use clap::{Args, Subcommand};
use jiff::Timestamp;
use milepost_cli_support::operator::{ReasonArgs, help};
use milepost_cli_support::output::{self, Outcome};
use milepost_cli_support::store::{self, Schema};
use milepost_cli_support::table::{Column, Field, Listing};
use milepost_core::actions::Action as _;
use milepost_core::actions::alert::AlertAction;
use milepost_core::alert::{AlertKey, AlertTarget, Incident, IncidentFilter, Silence, SilenceUntil};
use milepost_core::ident::IncidentId;
use milepost_core::port::Store;
use milepost_notify::Message;

use crate::nearest::nearest;
use crate::selection::Selection;
use crate::time::{length, relative};

#[derive(Debug, Subcommand)]
pub(crate) enum AlertsCommand {
    /// List the alerts that servers with targets record
    #[command(after_help = LIST_EXAMPLES)]
    List(ListArgs),
    /// List the targets of alerts, and whether their messages are delivered
    #[command(after_help = "Examples:\n  milepost alerts targets\n  milepost alerts targets --json")]
    Targets {
        /// Print one JSON array
        #[arg(long)]
        json: bool,
    },
    #[command(about = AlertAction::Silence.description().summary, after_help = help(AlertAction::Silence, SILENCE_EXAMPLES))]
    Silence(SilenceArgs),
    #[command(about = AlertAction::Unsilence.description().summary, after_help = help(AlertAction::Unsilence, UNSILENCE_EXAMPLES))]
    Unsilence(AlertArgs),
    /// Send a test message to a target of the configuration
    #[command(after_help = TEST_EXAMPLES)]
    Test {
        /// The name of the target: NAME of [notify.NAME]
        name: String,
    },
}

impl AlertsCommand {
    /// Returns whether the command is read-only.
    pub(crate) const fn only_looks(&self) -> bool {
        matches!(self, Self::List(_) | Self::Targets { .. })
    }
}

const LIST_EXAMPLES: &str = "\
A running `milepost serve` with a section [notify.NAME] records alerts. Without
one the list is empty; `milepost status` shows the current problems.

Examples:
  milepost alerts list
  milepost alerts list --ended --json";

const SILENCE_EXAMPLES: &str = "\
Examples:
  milepost alerts silence 'queue_paused: mail' --for 8h --reason 'maintenance'
  milepost alerts silence 'queue_paused: mail' --for over";

const UNSILENCE_EXAMPLES: &str = "\
Examples:
  milepost alerts unsilence 'queue_paused: mail'";

const TEST_EXAMPLES: &str = "\
Needs no store: the message is sent from here, with the settings of the
configuration.

Examples:
  milepost alerts test oncall
  milepost --config /etc/milepost.toml alerts test oncall";

#[derive(Debug, Args)]
pub(crate) struct ListArgs {
    /// Also alerts that have ended
    #[arg(long)]
    ended: bool,
    /// The maximum number of alerts
    #[arg(long, default_value_t = 200, value_parser = clap::value_parser!(u32).range(1..=1000))]
    limit: u32,
    /// Print one JSON array
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct AlertArgs {
    /// The alert, or the id of its incident, as the list shows them
    alert: String,
    #[command(flatten)]
    reason: ReasonArgs,
}

#[derive(Debug, Args)]
pub(crate) struct SilenceArgs {
    #[command(flatten)]
    alert: AlertArgs,
    /// A duration such as 1h, or over: until the alert ends
    #[arg(long = "for", value_name = "DURATION", default_value = "1h")]
    duration: SilenceUntil,
}

pub(crate) async fn run(command: AlertsCommand, selection: &Selection) -> Result<Outcome> {
    if let AlertsCommand::Test { name } = command {
        return test(&name, selection).await;
    }
    let store = store::open(&selection.store()?, Schema::MustFit).await?;
    match command {
        AlertsCommand::List(args) => list(store.as_ref(), &args).await?,
        AlertsCommand::Targets { json } => list_targets(&store.alert_targets().await?, json)?,
        AlertsCommand::Silence(SilenceArgs { alert, duration }) => {
            let key = find(&alert.alert, store.as_ref()).await?;
            if !alert.reason.acting(store.as_ref())?.silence_alert(&key, duration).await? {
                bail!(
                    "there is no open incident of {key}; `milepost alerts list` shows those that can be silenced"
                );
            }
            output::change(format_args!("silenced: {key}"))?;
        }
        AlertsCommand::Unsilence(args) => {
            let key = find(&args.alert, store.as_ref()).await?;
            let was = args.reason.acting(store.as_ref())?.unsilence_alert(&key).await?;
            output::change(format_args!("{key} is {} silenced", if was { "no longer" } else { "not" }))?;
        }
        AlertsCommand::Test { .. } => {}
    }
    Ok(Outcome::Done)
}

/// Returns the alert that was named, or that the incident with this id is of.
async fn find(alert: &str, store: &dyn Store) -> Result<AlertKey> {
    let Ok(id) = alert.parse::<IncidentId>() else {
        return alert.parse().context("name an alert as RULE: SUBJECT, or by the id of its incident");
    };
    let incidents = store.incidents(&IncidentFilter { ended: false, limit: 1_000 }).await?;
    let found = incidents.iter().find(|incident| incident.id == id);
    found.map(Incident::key).with_context(|| format!("there is no open incident {id}"))
}

async fn list(store: &dyn Store, args: &ListArgs) -> Result<()> {
    let incidents = store.incidents(&IncidentFilter { ended: args.ended, limit: args.limit }).await?;
    if args.json {
        return output::json(&incidents);
    }
    let now = Timestamp::now();
    let mut listing = Listing::new([
        Column::unbroken("SEVERITY"),
        Column::unbroken("SINCE"),
        Column::unbroken("ENDED"),
        Column::new("ALERT"),
        Column::new("TITLE"),
        Column::new("SILENCED"),
    ]);
    for incident in &incidents {
        let ended = incident.ended_at.map_or_else(String::new, |at| relative(at, now));
        listing.row([
            Field::text(incident.severity.as_str()),
            Field::text(relative(incident.first_seen_at, now)),
            Field::text(ended),
            Field::text(incident.key().to_string()),
            Field::text(&incident.title),
            Field::text(incident.silence.as_ref().map_or_else(String::new, |silence| silenced(silence, now))),
        ]);
    }
    listing.print()?;
    if incidents.is_empty() {
        output::note("no alerts are recorded; `milepost status` shows the current problems");
    }
    Ok(())
}

fn silenced(silence: &Silence, now: Timestamp) -> String {
    let left = |until: Timestamp| length(until.duration_since(now).try_into().unwrap_or_default());
    let until = silence.until.map_or_else(|| "until it ends".to_owned(), |at| format!("for {}", left(at)));
    let reason = silence.reason.as_ref().map_or_else(String::new, |reason| format!(": {reason}"));
    format!("{until}, by {}{reason}", silence.by)
}

fn list_targets(targets: &[AlertTarget], json: bool) -> Result<()> {
    if json {
        return output::json(&targets);
    }
    let now = Timestamp::now();
    let ago = |at: Option<Timestamp>| at.map_or_else(String::new, |at| relative(at, now));
    let mut listing = Listing::new([
        Column::unbroken("TARGET"),
        Column::unbroken("USED"),
        Column::unbroken("DELIVERED"),
        Column::unbroken("FAILING SINCE"),
        Column::unbroken("FAILURES"),
        Column::new("LAST ERROR"),
    ]);
    for target in targets {
        listing.row([
            Field::text(&target.name),
            Field::text(relative(target.seen_at, now)),
            Field::text(ago(target.sent_at)),
            Field::text(ago(target.failing_since)),
            Field::text(target.failures.to_string()),
            Field::text(target.last_error.as_deref().unwrap_or_default()),
        ]);
    }
    Ok(listing.print()?)
}

async fn test(name: &str, selection: &Selection) -> Result<Outcome> {
    let config = selection.config()?;
    let Some(entry) = config.notify.get(name) else {
        let known: Vec<&str> = config.notify.keys().map(String::as_str).collect();
        let hint = match nearest(name, &known) {
            Some(nearest) => format!("did you mean {nearest}?"),
            None if known.is_empty() => "the configuration has no section [notify.NAME]".to_owned(),
            None => format!("the targets are {}", known.join(", ")),
        };
        bail!("there is no target {name:?}; {hint}");
    };
    let target = entry.target(name)?;
    let message = Message::test(name, target.console.as_deref(), Timestamp::now());
    target
        .channel
        .send(&message)
        .await
        .with_context(|| format!("the target {name} did not accept the message"))?;
    output::change(format_args!("sent to {}", target.channel.place()))?;
    Ok(Outcome::Done)
}
