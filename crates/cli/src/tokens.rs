//! `milepost tokens`: manages access tokens of servers.

use std::time::Duration;

use anyhow::{Context, Result, bail};
use clap::builder::{PossibleValuesParser, TypedValueParser};
use clap::{Args, Subcommand};
use jiff::{SignedDuration, Timestamp};
use milepost_cli_support::operator::{ReasonArgs, operator};
use milepost_cli_support::output::{self, Outcome};
use milepost_cli_support::parsers::{point_in_time, positive_duration};
use milepost_cli_support::store::{self, Schema, StoreAddress};
use milepost_cli_support::table::{Column, Field, Listing, WIDE, terminal_columns};
use milepost_core::token::{
    FoundToken, NewToken, RANDOM_BYTES, Role, Secret, Standing, TokenScope, TokenView,
};
use serde::Serialize;

use crate::time::relative;

#[derive(Debug, Subcommand)]
pub(crate) enum TokensCommand {
    /// Create a token and print it, once
    #[command(after_help = CREATE_EXAMPLES)]
    Create(CreateArgs),
    /// List tokens, including revoked ones, without their secrets
    #[command(after_help = "Examples:\n  milepost tokens list\n  milepost tokens list --json")]
    List {
        /// Print one JSON array
        #[arg(long)]
        json: bool,
    },
    /// Revoke a token, and end the sessions that were started with it
    #[command(after_help = REVOKE_EXAMPLES)]
    Revoke(RevokeArgs),
}

impl TokensCommand {
    /// Returns whether the command is read-only.
    pub(crate) const fn only_looks(&self) -> bool {
        matches!(self, Self::List { .. })
    }
}

const CREATE_EXAMPLES: &str = "\
Roles:
  viewer    reads
  operator  reads, creates jobs and events, operates on them
  admin     all operations
  worker    runs jobs by the worker protocol, and nothing else

With --queue and --kind, the token sees and changes only jobs of these queues
and kinds, with their batches, bulk jobs and schedules. Requests about the
whole store are refused.

Within a second after the first token is created, servers on this store require
a token. Only the token goes to stdout; the store keeps only a hash of it.

Examples:
  milepost tokens create ada --role admin --expires 90d
  milepost tokens create mailer --role operator --queue 'mail*' --kind 'mail.*'
  MILEPOST_TOKEN=$(milepost tokens create ci --role operator)
  curl -H \"Authorization: Bearer $MILEPOST_TOKEN\" \\
    http://127.0.0.1:7070/v1/queues";

const REVOKE_EXAMPLES: &str = "\
The prefix is the part of a token between mp_ and the next _; `milepost tokens
list` shows it. Servers refuse a revoked token within a second.

Examples:
  milepost tokens revoke k3x9mfpa --reason 'the laptop is lost'";

#[derive(Debug, Args)]
pub(crate) struct CreateArgs {
    /// Its name, which the audit records for its actions
    name: String,
    /// What it allows
    #[arg(long, value_parser = role())]
    role: Role,
    /// Limits it to queues: a name, or the beginning of names and `*`; can be repeated
    #[arg(long, value_name = "PATTERN")]
    queue: Vec<String>,
    /// Limits it to kinds: a name, or the beginning of names and `*`; can be repeated
    #[arg(long, value_name = "PATTERN")]
    kind: Vec<String>,
    /// How long it is valid, such as 90d [default: until it is revoked]
    #[arg(long, value_name = "TIME", value_parser = positive_duration)]
    expires: Option<Duration>,
    /// When it becomes valid, such as 2026-05-01T09:00:00Z [default: now]
    #[arg(long, value_name = "WHEN", value_parser = point_in_time)]
    starts: Option<Timestamp>,
    #[command(flatten)]
    reason: ReasonArgs,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct RevokeArgs {
    /// The token's prefix
    prefix: String,
    #[command(flatten)]
    reason: ReasonArgs,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

fn role() -> impl TypedValueParser<Value = Role> {
    PossibleValuesParser::new(Role::ALL.iter().map(|role| role.as_str())).try_map(|name| name.parse::<Role>())
}

pub(crate) async fn run(command: TokensCommand, address: &StoreAddress) -> Result<Outcome> {
    match command {
        TokensCommand::Create(args) => create(args, address).await?,
        TokensCommand::List { json } => {
            list(&store::open(address, Schema::MustFit).await?.tokens().await?, json)?;
        }
        TokensCommand::Revoke(args) => revoke(args, address).await?,
    }
    Ok(Outcome::Done)
}

/// A new token in the JSON output.
#[derive(Serialize)]
struct Created<'a> {
    token: &'a str,
    #[serde(flatten)]
    view: &'a TokenView,
}

async fn create(args: CreateArgs, address: &StoreAddress) -> Result<()> {
    let mut random = [0; RANDOM_BYTES];
    getrandom::fill(&mut random).context("this machine gives no random numbers")?;
    let secret = Secret::of_random(&random);
    let token = NewToken {
        starts_at: args.starts,
        lasts: args.expires,
        scope: scope(args.queue, args.kind),
        ..NewToken::new(args.name.as_str(), args.role, &secret, operator()?)
    };
    // Checked before the store is opened, because opening may create it.
    token.check()?;
    check_end(&token)?;
    if output::is_lost() {
        bail!("the token would be lost: it is printed to stdout, once, and stdout is closed or /dev/null");
    }
    let store = store::open(address, Schema::MadeWhenEmpty).await?;
    let first = !store.has_tokens().await?;
    let store = args.reason.acting(store.as_ref())?;
    let view = store.create_token(&token).await?;
    if let Err(error) = print(args.json, &secret, &view) {
        let prefix = &view.prefix;
        return Err(match store.revoke_token(prefix, &token.created_by).await {
            Ok(_) => error.context(format!("the token could not be printed, so {prefix} is revoked")),
            Err(why) => error.context(format!(
                "the token could not be printed, and {prefix} is still valid, because it could not be revoked ({why}): run \
                 `milepost tokens revoke {prefix}`"
            )),
        });
    }
    if !args.json {
        let from = token.starts_at.map_or_else(String::new, |at| format!("from {at:.0} "));
        let until = view.expires_at.map_or_else(|| "it is revoked".to_owned(), |at| format!("{at:.0}"));
        let limited = view.scope.as_ref().map_or_else(String::new, |scope| format!(", limited to {scope}"));
        output::note(format_args!(
            "token {} ({}{limited}) is valid {from}until {until}; it is shown only once",
            view.name, view.role
        ));
        if first {
            output::note("it is the first one: servers on this store now require a token");
        }
    }
    Ok(())
}

/// Returns the scope of these patterns; none without patterns.
fn scope(queues: Vec<String>, kinds: Vec<String>) -> Option<TokenScope> {
    (!queues.is_empty() || !kinds.is_empty()).then_some(TokenScope { queues, kinds })
}

/// Prints a new token to stdout.
fn print(json: bool, secret: &Secret, view: &TokenView) -> Result<()> {
    if json {
        return output::json(&Created { token: secret.reveal(), view });
    }
    Ok(output::line(secret.reveal())?)
}

/// Rejects a token that has expired already.
fn check_end(token: &NewToken) -> Result<()> {
    let (Some(starts), Some(lasts)) = (token.starts_at, token.lasts) else { return Ok(()) };
    match starts.checked_add(SignedDuration::try_from(lasts)?) {
        Ok(end) if end <= Timestamp::now() => bail!(
            "the token would have expired at {end:.0}: --expires counts from --starts; give a later start or more time"
        ),
        _ => Ok(()),
    }
}

#[derive(Serialize)]
struct Revoked<'a> {
    prefix: &'a str,
    revoked: bool,
}

async fn revoke(args: RevokeArgs, address: &StoreAddress) -> Result<()> {
    if Secret::parse(&args.prefix).is_some() {
        bail!("this is a complete token; give only its prefix, and do not type tokens into a shell");
    }
    let store = store::open(address, Schema::MustFit).await?;
    let revoked = args.reason.acting(store.as_ref())?.revoke_token(&args.prefix, &operator()?).await?;
    if !store.has_tokens().await? {
        output::note(
            "no token is left: a server at a loopback address requires none, unless it has --require-tokens or trusted_proxies",
        );
    }
    if args.json {
        return output::heard_or_not(output::json(&Revoked { prefix: &args.prefix, revoked }));
    }
    let words = if revoked { "is revoked" } else { "was revoked already" };
    output::change(format_args!("token {} {words}", args.prefix))
}

/// A token in the JSON list.
#[derive(Serialize)]
struct Listed<'a> {
    #[serde(flatten)]
    view: &'a TokenView,
    standing: Standing,
}

fn list(tokens: &[FoundToken], json: bool) -> Result<()> {
    if json {
        let listed = tokens.iter().map(|token| Listed { view: &token.view, standing: token.standing() });
        return output::json(&listed.collect::<Vec<_>>());
    }
    if tokens.is_empty() {
        output::note(
            "there are no tokens; a server at a loopback address requires none, unless it has --require-tokens or trusted_proxies",
        );
        return Ok(());
    }
    let made = terminal_columns().is_none_or(|columns| columns >= WIDE);
    let is_any_limited = tokens.iter().any(|token| token.view.scope.is_some());
    let columns = [
        Some(Column::new("NAME")),
        Some(Column::unbroken("PREFIX")),
        Some(Column::unbroken("ROLE")),
        is_any_limited.then_some(Column::new("LIMITED TO")),
        Some(Column::unbroken("STANDING")),
        Some(Column::unbroken("LAST USED")),
        made.then_some(Column::unbroken("CREATED")),
        Some(Column::new("BY")),
    ];
    let mut listing = Listing::new(columns.into_iter().flatten());
    for token in tokens {
        let view = &token.view;
        let used = view.last_used_at.map_or_else(|| "never".to_owned(), |at| relative(at, token.at));
        let fields = [
            Some(Field::text(&view.name)),
            Some(Field::text(&view.prefix)),
            Some(Field::text(view.role.as_str())),
            is_any_limited
                .then(|| Field::text(view.scope.as_ref().map_or_else(String::new, ToString::to_string))),
            Some(standing(token)),
            Some(Field::text(used)),
            made.then(|| Field::text(relative(view.created_at, token.at))),
            Some(Field::text(&view.created_by)),
        ];
        listing.row(fields.into_iter().flatten());
    }
    Ok(listing.print()?)
}

fn standing(token: &FoundToken) -> Field {
    let view = &token.view;
    let expires = |word| view.expires_at.map(|at| format!("{word} {}", relative(at, token.at)));
    match token.standing() {
        Standing::Valid => Field::text(expires("expires").unwrap_or_else(|| "valid".to_owned())),
        Standing::NotYet => Field::text(format!("starts {}", relative(view.starts_at, token.at))),
        Standing::Expired => Field::warning(expires("expired").unwrap_or_else(|| "expired".to_owned())),
        Standing::Revoked => Field::text("revoked"),
    }
}
