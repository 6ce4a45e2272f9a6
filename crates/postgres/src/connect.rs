//! Connections: which settings they have and how they are named to people.

use std::fmt;
use std::net::IpAddr;
use std::str::FromStr;
use std::time::Duration;

use milepost_core::error::{SchemaError, StoreError};
use milepost_core::job::PAYLOAD_BYTES_MAX;
use milepost_core::port::StoreResult;
use sqlx::postgres::{PgConnectOptions, PgPoolOptions, PgSslMode};
use sqlx::{Connection, Executor, PgConnection, Row};

use crate::error::store_error;
use crate::session::Sessions;
use crate::shelf::Shelf;
use crate::statement;

/// The oldest server that is supported.
pub(crate) const VERSION_NUM_MIN: i32 = 150_000;

/// How long a connection may have rested to be used without a test.
pub(crate) const REST_TRUSTED: Duration = Duration::from_secs(1);

/// How long who wants to come in waits at most for a server that does not answer: who asks gives up soon after.
const ACCESS_PATIENCE: Duration = Duration::from_secs(3);

/// How much longer than a verb a question may take, such as a check of all rows.
pub const PATIENCE_OF_QUESTIONS: u32 = 30;

/// How idle workers learn of new work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WakeMode {
    /// LISTEN on a connection of their own, with the sleep handshake.
    Listen,
    /// Only by polling: behind a transaction pooler, where LISTEN and session locks do not work. Every verb is then
    /// one transaction, and no statement is prepared under a name.
    Poll,
}

/// How to use a PostgreSQL server.
#[derive(Clone)]
pub struct PostgresOptions {
    /// Connections for workers' verbs, such as claims and ends; as many again for callers' verbs, such as
    /// enqueues and cancels, so that neither waits for the other.
    pub connections_max: u32,
    /// The largest payload accepted, in bytes of JSON text.
    pub payload_bytes_max: usize,
    /// How idle workers learn of new work.
    pub wake: WakeMode,
    /// The URL of the same database past a transaction pooler, for bulk jobs: each of their runs has a connection of its
    /// own, which keeps what was prepared and can be stopped by its process id. Without it they are refused in
    /// [`WakeMode::Poll`]; in [`WakeMode::Listen`] it is not needed.
    pub direct: Option<String>,
    /// How long to wait for a connection before the server counts as unreachable.
    pub acquire_timeout: Duration,
    /// How long a statement waits for its answer before its connection is given up; people's questions wait
    /// [`PATIENCE_OF_QUESTIONS`] times as long.
    pub answer_timeout: Duration,
    /// How long a process that waits to be told of new work trusts that it was told of all; then it looks by itself: between 10 ms and
    /// an hour, and the same in all processes of a store, since others end the session of one that is silent for longer. Only tests
    /// change it: on a store that does not look by itself, what starts was told.
    #[doc(hidden)]
    pub sleep_max: Duration,
}

impl Default for PostgresOptions {
    fn default() -> Self {
        Self {
            connections_max: 10,
            payload_bytes_max: PAYLOAD_BYTES_MAX,
            wake: WakeMode::Listen,
            direct: None,
            acquire_timeout: Duration::from_secs(10),
            answer_timeout: Duration::from_secs(60),
            sleep_max: Duration::from_secs(1),
        }
    }
}

impl fmt::Debug for PostgresOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PostgresOptions")
            .field("connections_max", &self.connections_max)
            .field("payload_bytes_max", &self.payload_bytes_max)
            .field("wake", &self.wake)
            // It may hold a password.
            .field("direct", &self.direct.is_some())
            .field("acquire_timeout", &self.acquire_timeout)
            .field("answer_timeout", &self.answer_timeout)
            .field("sleep_max", &self.sleep_max)
            .finish()
    }
}

/// A server's address for people: host, port and database, never a password.
pub(crate) fn place(options: &PgConnectOptions) -> String {
    let database = options.get_database().unwrap_or("");
    format!("PostgreSQL at {}:{}/{database}", options.get_host(), options.get_port())
}

/// Whether this is the URL of a PostgreSQL database, which it says nothing more about.
///
/// # Errors
/// What is wrong with it, in words without a piece of it, since it may hold a password.
pub fn check_url(url: &str) -> Result<(), String> {
    if !["postgres://", "postgresql://"].iter().any(|scheme| url.starts_with(scheme)) {
        return Err("it does not begin with postgres://".to_owned());
    }
    let (url, _) = read_own(url, PostgresOptions::default())?;
    match PgConnectOptions::from_str(&url) {
        Ok(options) if options.get_database().is_none_or(str::is_empty) => {
            Err("it names no database".to_owned())
        }
        Ok(_) => Ok(()),
        Err(_) => Err("its user, host, port or parameters cannot be read".to_owned()),
    }
}

/// Takes Milepost's own parameters out of a URL, which go before the options: `pooler=transaction` is
/// [`WakeMode::Poll`], and `direct=HOST:PORT` beside it is the same URL there as [`PostgresOptions::direct`].
fn read_own(url: &str, mut options: PostgresOptions) -> Result<(String, PostgresOptions), String> {
    let (place, parameters) = url.split_once('?').unwrap_or((url, ""));
    let own = |name| parameters.split('&').find_map(|it| it.strip_prefix(name)?.strip_prefix('='));
    let others: Vec<&str> = parameters
        .split('&')
        .filter(|it| !it.is_empty() && !["pooler=", "direct="].iter().any(|own| it.starts_with(own)))
        .collect();
    let rest = if others.is_empty() { place.to_owned() } else { format!("{place}?{}", others.join("&")) };
    match own("pooler") {
        None => {}
        Some("transaction") => options.wake = WakeMode::Poll,
        Some(_) => {
            return Err(
                "pooler can only be `transaction`: behind one that keeps sessions nothing is to be set"
                    .to_owned(),
            );
        }
    }
    if let Some(direct) = own("direct") {
        if options.wake != WakeMode::Poll {
            return Err("direct is for a URL with pooler=transaction alone".to_owned());
        }
        options.direct = Some(direct_url(&rest, direct)?);
    }
    Ok((rest, options))
}

/// The same database at HOST:PORT.
fn direct_url(url: &str, place: &str) -> Result<String, String> {
    let wrong = || "direct is HOST:PORT of the server itself, past the pooler".to_owned();
    let (host, port) = place.rsplit_once(':').ok_or_else(wrong)?;
    let port: u16 = port.parse().map_err(|_| wrong())?;
    if host.is_empty() || host.contains(['/', '@', '?', '#']) {
        return Err(wrong());
    }
    let (scheme, after) = url.split_once("://").unwrap_or(("postgres", url));
    let (authority, path) = after.split_once('/').unwrap_or((after, ""));
    let login = authority.rsplit_once('@').map_or(String::new(), |(login, _)| format!("{login}@"));
    Ok(format!("{scheme}://{login}{host}:{port}/{path}"))
}

/// What a store's URL says: how to connect, and the options with what the URL sets of them.
pub(crate) fn read(url: &str, options: PostgresOptions) -> StoreResult<(PgConnectOptions, PostgresOptions)> {
    let (url, options) = read_own(url, options).map_err(|why| StoreError::Unavailable {
        place: "the PostgreSQL store (its URL is not usable)".to_owned(),
        cause: why.into(),
    })?;
    Ok((parse(&url, options.wake)?, options))
}

/// Reads a `postgres://` URL. The error never repeats it, since it may hold a password.
pub(crate) fn parse(url: &str, wake: WakeMode) -> StoreResult<PgConnectOptions> {
    let connect = PgConnectOptions::from_str(url).map_err(|e| StoreError::Unavailable {
        place: "the PostgreSQL store (its URL is not usable)".to_owned(),
        cause: e.into(),
    })?;
    let name = connect.get_application_name().unwrap_or("milepost").to_owned();
    let connect = connect.application_name(&name);
    Ok(match wake {
        WakeMode::Listen => connect,
        // Callers' own statements on the pool are not kept either. Poolers refuse start-up parameters they do not
        // know, and the binary protocol needs no float digits.
        WakeMode::Poll => connect.statement_cache_capacity(0).extra_float_digits(None),
    })
}

/// How to reach the server itself, for connections that must last; `None` behind a pooler when nobody said how.
pub(crate) fn direct(
    connect: &PgConnectOptions,
    options: &PostgresOptions,
) -> StoreResult<Option<PgConnectOptions>> {
    match options.wake {
        WakeMode::Listen => Ok(Some(connect.clone())),
        WakeMode::Poll => options.direct.as_ref().map(|url| parse(url, WakeMode::Listen)).transpose(),
    }
}

/// Connections by who uses them.
pub(crate) struct Pools {
    /// Workers' verbs, with pinned plans.
    pub(crate) hot: Sessions,
    /// Callers' verbs, with pinned plans.
    pub(crate) intake: Sessions,
    /// People's questions, with the planner's own plans, never compiled.
    pub(crate) calm: Sessions,
    /// Who may come in. People's questions may take long; a worker's heartbeat must not wait for them at the door.
    pub(crate) access: Sessions,
}

/// Connections to come: each is made when it is first needed.
pub(crate) fn pools(connect: &PgConnectOptions, options: &PostgresOptions) -> Pools {
    let base = || {
        PgPoolOptions::new()
            .acquire_timeout(options.acquire_timeout)
            .test_before_acquire(false)
            // Under load a test would cost a round trip each; what has rested may have broken meanwhile.
            .before_acquire(|connection, its| {
                Box::pin(async move { Ok(its.idle_for < REST_TRUSTED || connection.ping().await.is_ok()) })
            })
    };
    let hot = || base().max_connections(options.connections_max);
    // People ask seldom: a connection that broke since the last question is found out before the next one.
    let seldom = |most| base().test_before_acquire(true).max_connections(most);
    let calm = seldom(4);
    let patience = options.acquire_timeout.min(ACCESS_PATIENCE);
    let access = seldom(2).acquire_timeout(patience);
    let verb = options.answer_timeout;
    let question = verb * PATIENCE_OF_QUESTIONS;
    match options.wake {
        WakeMode::Listen => {
            let pinned = || {
                let pool = hot().after_connect(|connection, _| {
                    Box::pin(async { connection.execute(statement::PIN_PLANS).await.map(drop) })
                });
                Sessions::lasting(Shelf::keeping(pool.connect_lazy_with(connect.clone())), verb)
            };
            let plain = |pool: PgPoolOptions, within| {
                let pool = pool.after_connect(|connection, _| {
                    Box::pin(async { connection.execute(statement::COMPILE_NOTHING).await.map(drop) })
                });
                Sessions::lasting(Shelf::passing_on(pool.connect_lazy_with(connect.clone())), within)
            };
            Pools {
                hot: pinned(),
                intake: pinned(),
                calm: plain(calm, question),
                access: plain(access, verb),
            }
        }
        WakeMode::Poll => {
            let pinned = || {
                let shelf = Shelf::keeping(hot().connect_lazy_with(connect.clone()));
                Sessions::passing(shelf, statement::BEGIN_PINNED, verb)
            };
            let plain = |pool: PgPoolOptions, within| {
                let shelf = Shelf::passing_on(pool.connect_lazy_with(connect.clone()));
                Sessions::passing(shelf, statement::BEGIN_CALM, within)
            };
            Pools {
                hot: pinned(),
                intake: pinned(),
                calm: plain(calm, question),
                access: plain(access, verb),
            }
        }
    }
}

/// Sees whether the server can be reached, refuses one that is too old or cannot hold every text, and says loudly what weakens durability.
///
/// On a connection for that alone: a pool tries until its time is up and then says only that; one try says why it cannot be.
pub(crate) async fn check_server(
    connect: &PgConnectOptions,
    options: &PostgresOptions,
    place: &str,
) -> StoreResult<()> {
    let asking = async {
        let mut connection = PgConnection::connect_with(connect).await?;
        // Without a name, for poolers.
        let row = connection.fetch_one(sqlx::raw_sql(statement::SETTINGS)).await?;
        connection.close().await.map(|()| row)
    };
    let answered = tokio::time::timeout(options.acquire_timeout, asking).await;
    let row =
        answered.unwrap_or(Err(sqlx::Error::PoolTimedOut)).map_err(|e| store_error(place, "connect", e))?;
    let get = |name: &str| row.try_get::<String, _>(name).unwrap_or_default();
    if row.try_get::<i32, _>("version_num").unwrap_or(0) < VERSION_NUM_MIN {
        return Err(StoreError::Schema(SchemaError::ServerTooOld {
            found: get("version"),
            needed: "PostgreSQL 15",
        }));
    }
    if get("encoding") != "UTF8" {
        return Err(StoreError::Schema(SchemaError::Encoding { found: get("encoding") }));
    }
    if can_be_read_on_the_way(connect) {
        tracing::warn!(
            place,
            "the connection may be unencrypted, and nobody checks who answers: set sslmode=verify-full in the URL, or sslmode=disable where the \
             network is trusted"
        );
    }
    for setting in ["fsync", "full_page_writes", "synchronous_commit"] {
        if get(setting) == "off" {
            tracing::warn!(
                place,
                setting,
                "the server runs with {setting} = off: an acknowledged job can be lost when it crashes"
            );
        }
    }
    Ok(())
}

/// Whether the URL leaves it to the server of another machine if the connection is encrypted.
fn can_be_read_on_the_way(connect: &PgConnectOptions) -> bool {
    let host = connect.get_host();
    let is_here = connect.get_socket().is_some()
        || host.starts_with('/')
        || host.eq_ignore_ascii_case("localhost")
        || host.trim_matches(['[', ']']).parse::<IpAddr>().is_ok_and(|address| address.is_loopback());
    !is_here && matches!(connect.get_ssl_mode(), PgSslMode::Allow | PgSslMode::Prefer)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

    use super::*;

    #[test]
    fn a_url_says_that_a_pooler_is_in_between_and_where_the_server_is() {
        let url = "postgres://ada:s3cret@pooler:6432/app?sslmode=prefer&pooler=transaction&direct=db:5432";
        let (rest, options) = read_own(url, PostgresOptions::default()).unwrap();
        assert_eq!(rest, "postgres://ada:s3cret@pooler:6432/app?sslmode=prefer");
        assert_eq!(options.wake, WakeMode::Poll);
        assert_eq!(options.direct.as_deref(), Some("postgres://ada:s3cret@db:5432/app?sslmode=prefer"));
        let (rest, options) = read_own("postgres://db/app", PostgresOptions::default()).unwrap();
        assert_eq!(
            (rest.as_str(), options.wake, options.direct),
            ("postgres://db/app", WakeMode::Listen, None)
        );
    }

    #[test]
    fn only_another_machine_with_an_undecided_encryption_is_warned_about() {
        let warned = |url: &str| can_be_read_on_the_way(&PgConnectOptions::from_str(url).unwrap());
        for url in
            ["postgres://db/app", "postgres://10.0.0.7/app?sslmode=prefer", "postgres://db/app?sslmode=allow"]
        {
            assert!(warned(url), "{url}");
        }
        for url in [
            "postgres://localhost/app",
            "postgres://127.0.0.2/app",
            "postgres://[::1]/app",
            "postgres://ada@localhost/app?host=/run/postgresql",
            "postgres://db/app?sslmode=disable",
            "postgres://db/app?sslmode=verify-full",
            "postgres://db/app?sslmode=require",
        ] {
            assert!(!warned(url), "{url}");
        }
    }

    #[test]
    fn parameters_that_make_no_sense_are_refused_without_the_password() {
        for parameters in [
            "pooler=session",
            "direct=db:5432",
            "pooler=transaction&direct=db",
            "pooler=transaction&direct=:1",
        ] {
            let url = format!("postgres://ada:s3cret@db/app?{parameters}");
            let why = check_url(&url).unwrap_err();
            assert!(!why.contains("s3cret"), "{why}");
            read(&url, PostgresOptions::default()).unwrap_err();
        }
    }
}
