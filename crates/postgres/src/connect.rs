//! Connection settings, server checks, and names of servers in messages.

use std::fmt;
use std::net::IpAddr;
use std::str::FromStr;
use std::time::Duration;

use milepost_core::error::{SchemaError, StoreError};
use milepost_core::job::PAYLOAD_BYTES_MAX;
use milepost_core::port::StoreResult;
use milepost_core::sql;
use sqlx::postgres::{PgConnectOptions, PgPoolOptions, PgSslMode};
use sqlx::{Connection, Executor, PgConnection, Row};

use crate::connection_reuse::{IdleConnections, REST_TRUSTED};
use crate::error::store_error;
use crate::session::Sessions;

/// The oldest supported server version.
pub(crate) const VERSION_NUM_MIN: i32 = 150_000;

/// Maximum time to wait for a connection that checks access: clients time out soon after.
const ACCESS_PATIENCE: Duration = Duration::from_secs(3);

/// Time limit of an operator's query, such as a check of all rows, as a multiple of the limit of a verb.
pub const PATIENCE_OF_QUESTIONS: u32 = 30;

/// How idle workers learn about new work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WakeMode {
    /// LISTEN on a dedicated connection, with the sleep handshake.
    Listen,
    /// Polling only: behind a transaction pooler, where LISTEN and session locks do not work. Each verb is then one
    /// transaction, and statements are not prepared under names.
    Poll,
}

/// Options for a PostgreSQL server.
#[derive(Clone)]
pub struct PostgresOptions {
    /// Maximum number of connections for workers' verbs, such as claims and ends of runs, and the same number for callers'
    /// verbs, such as enqueues and cancels, so that neither waits for the other.
    pub connections_max: u32,
    /// The largest payload accepted, in bytes of JSON text.
    pub payload_bytes_max: usize,
    /// How idle workers learn about new work.
    pub wake: WakeMode,
    /// The URL of the same database that bypasses a transaction pooler. Each run of a bulk job needs a dedicated connection,
    /// which keeps prepared statements and can be canceled by its process ID. Without this URL, bulk jobs are refused in
    /// [`WakeMode::Poll`]; in [`WakeMode::Listen`] it is not needed.
    pub direct: Option<String>,
    /// Time limit for getting a connection, after which the server counts as unreachable.
    pub acquire_timeout: Duration,
    /// Time limit of a statement, after which its connection is closed. Operators' queries have [`PATIENCE_OF_QUESTIONS`]
    /// times this limit.
    pub answer_timeout: Duration,
    /// How long a process that waits for notifications relies on them before it polls: between 10 ms and one hour, and the
    /// same in all processes of a store, because a session that is silent for longer is ended by others. Only tests change
    /// it, to prove that work starts because of a notification and not because of polling.
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
            // It may contain a password.
            .field("direct", &self.direct.is_some())
            .field("acquire_timeout", &self.acquire_timeout)
            .field("answer_timeout", &self.answer_timeout)
            .field("sleep_max", &self.sleep_max)
            .finish()
    }
}

/// Returns a server's address for messages: host, port and database, never a password.
pub(crate) fn place(options: &PgConnectOptions) -> String {
    let database = options.get_database().unwrap_or("");
    format!("PostgreSQL at {}:{}/{database}", options.get_host(), options.get_port())
}

/// Checks whether this is the URL of a PostgreSQL database that is not behind a transaction pooler, without connecting.
///
/// # Errors
/// Describes the problem without any part of the URL, which may contain a password.
pub fn check_url(url: &str) -> Result<(), String> {
    if !["postgres://", "postgresql://"].iter().any(|scheme| url.starts_with(scheme)) {
        return Err("it does not begin with postgres://".to_owned());
    }
    let (url, options) = read_own(url, PostgresOptions::default())?;
    if options.wake == WakeMode::Poll {
        return Err("it has the parameter pooler, but must be the address of the server itself".to_owned());
    }
    match PgConnectOptions::from_str(&url) {
        Ok(options) if options.get_database().is_none_or(str::is_empty) => {
            Err("it names no database".to_owned())
        }
        Ok(_) => Ok(()),
        Err(_) => Err("its user, host, port or parameters cannot be read".to_owned()),
    }
}

/// Removes Milepost's own parameters from a URL; they override `options`. `pooler=transaction` is [`WakeMode::Poll`], and
/// `direct=HOST:PORT` sets [`PostgresOptions::direct`] to the same URL at that address.
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
                "pooler can only be `transaction`; remove the parameter for a pooler that keeps sessions"
                    .to_owned(),
            );
        }
    }
    if let Some(direct) = own("direct") {
        if options.wake != WakeMode::Poll {
            return Err("direct is allowed only together with pooler=transaction".to_owned());
        }
        options.direct = Some(direct_url(&rest, direct)?);
    }
    Ok((rest, options))
}

/// Returns the URL of the same database at HOST:PORT.
fn direct_url(url: &str, place: &str) -> Result<String, String> {
    let wrong = || "direct must be HOST:PORT of the server itself, not of the pooler".to_owned();
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

/// Parses a store's URL: the connection options, and `options` with the URL's own parameters applied.
pub(crate) fn read(url: &str, options: PostgresOptions) -> StoreResult<(PgConnectOptions, PostgresOptions)> {
    let (url, options) = read_own(url, options).map_err(|why| StoreError::Unavailable {
        place: "the PostgreSQL store (its URL is not usable)".to_owned(),
        cause: why.into(),
    })?;
    Ok((parse(&url, options.wake)?, options))
}

/// Parses a `postgres://` URL. The error never contains the URL, which may hold a password.
pub(crate) fn parse(url: &str, wake: WakeMode) -> StoreResult<PgConnectOptions> {
    let connect = PgConnectOptions::from_str(url).map_err(|e| StoreError::Unavailable {
        place: "the PostgreSQL store (its URL is not usable)".to_owned(),
        cause: e.into(),
    })?;
    let name = connect.get_application_name().unwrap_or("milepost").to_owned();
    let connect = connect.application_name(&name);
    Ok(match wake {
        WakeMode::Listen => connect,
        // Callers' own statements on the pool are not cached either. Poolers refuse start-up parameters that they do not
        // know, and the binary protocol does not need `extra_float_digits`.
        WakeMode::Poll => connect.statement_cache_capacity(0).extra_float_digits(None),
    })
}

/// Returns options for dedicated connections to the server itself; `None` behind a pooler without a direct address.
pub(crate) fn direct(
    connect: &PgConnectOptions,
    options: &PostgresOptions,
) -> StoreResult<Option<PgConnectOptions>> {
    match options.wake {
        WakeMode::Listen => Ok(Some(connect.clone())),
        WakeMode::Poll => options.direct.as_ref().map(|url| parse(url, WakeMode::Listen)).transpose(),
    }
}

/// Connection pools by use.
pub(crate) struct Pools {
    /// Workers' verbs, with pinned plans.
    pub(crate) hot: Sessions,
    /// Callers' verbs, with pinned plans.
    pub(crate) intake: Sessions,
    /// Operators' queries, with the planner's own plans, without JIT compilation.
    pub(crate) calm: Sessions,
    /// Access checks. Operators' queries may take long, and a worker's heartbeat must not wait for them when its token is
    /// checked.
    pub(crate) access: Sessions,
    /// Statements of callers and of bulk jobs, which keep the search path of their account.
    pub(crate) own: Sessions,
}

/// How long the test of a connection may take.
const TEST_MAX: Duration = Duration::from_secs(2);

/// Returns whether a connection answers. An error closes it without a farewell, which could wait for ever, too.
async fn answers(connection: &mut PgConnection) -> Result<bool, sqlx::Error> {
    let tested = tokio::time::timeout(TEST_MAX, connection.ping()).await;
    tested.unwrap_or_else(|silent| Err(sqlx::Error::Io(silent.into()))).map(|()| true)
}

/// Configures a connection for operators' queries, and a transaction for them.
const CALM: &str = concat!(sql!("pin_calm"), ";\n", sql!("lock_wait/callers"));
const BEGIN_CALM: &str = concat!(sql!("begin_calm"), ";\n", sql!("lock_wait/callers_local"));

/// Creates the pools; each connection is made when it is first needed.
pub(crate) fn pools(connect: &PgConnectOptions, options: &PostgresOptions) -> Pools {
    let base = || {
        PgPoolOptions::new()
            .acquire_timeout(options.acquire_timeout)
            .test_before_acquire(false)
            // Under load a test of each connection would cost a round trip; only a connection that was idle may have broken.
            .before_acquire(|connection, its| {
                Box::pin(async move { Ok(its.idle_for < REST_TRUSTED || connection.ping().await.is_ok()) })
            })
    };
    let hot = || base().max_connections(options.connections_max);
    // Operators' queries are rare, so each connection is tested before use.
    let seldom =
        |most| base().before_acquire(|connection, _| Box::pin(answers(connection))).max_connections(most);
    // A caller can drop a transaction on a silent connection, and the driver's own test on return has no time limit.
    let (calm, own) = (seldom(4), seldom(4).after_release(|connection, _| Box::pin(answers(connection))));
    let patience = options.acquire_timeout.min(ACCESS_PATIENCE);
    let access = seldom(2).acquire_timeout(patience);
    let verb = options.answer_timeout;
    let question = verb * PATIENCE_OF_QUESTIONS;
    match options.wake {
        WakeMode::Listen => {
            let pinned = |settings: &'static str| {
                let pool = hot().after_connect(move |connection, _| {
                    Box::pin(async move { connection.execute(settings).await.map(drop) })
                });
                Sessions::lasting(IdleConnections::keeping(pool.connect_lazy_with(connect.clone())), verb)
            };
            let plain = |pool: PgPoolOptions, settings: &'static str, within| {
                let pool = pool.after_connect(move |connection, _| {
                    Box::pin(async move { connection.execute(settings).await.map(drop) })
                });
                Sessions::lasting(
                    IdleConnections::passing_on(pool.connect_lazy_with(connect.clone())),
                    within,
                )
            };
            Pools {
                hot: pinned(concat!(sql!("pin_plans"), ";\n", sql!("lock_wait/workers"))),
                intake: pinned(concat!(sql!("pin_plans"), ";\n", sql!("lock_wait/callers"))),
                calm: plain(calm, CALM, question),
                access: plain(access, CALM, verb),
                own: plain(own, sql!("compile_nothing"), question),
            }
        }
        WakeMode::Poll => {
            let pinned = |begin| {
                let connections = IdleConnections::keeping(hot().connect_lazy_with(connect.clone()));
                Sessions::passing(connections, begin, verb)
            };
            let plain = |pool: PgPoolOptions, begin, within| {
                let connections = IdleConnections::passing_on(pool.connect_lazy_with(connect.clone()));
                Sessions::passing(connections, begin, within)
            };
            Pools {
                hot: pinned(concat!(sql!("begin_pinned"), ";\n", sql!("lock_wait/workers_local"))),
                intake: pinned(concat!(sql!("begin_pinned"), ";\n", sql!("lock_wait/callers_local"))),
                calm: plain(calm, BEGIN_CALM, question),
                access: plain(access, BEGIN_CALM, verb),
                own: plain(own, sql!("begin_own"), question),
            }
        }
    }
}

/// Checks that the server can be reached, refuses one that is too old or cannot store every text, and logs a warning about
/// settings that weaken durability.
///
/// Uses a separate connection: a pool retries until its timeout and then reports only the timeout, while a single attempt
/// reports the cause.
pub(crate) async fn check_server(
    connect: &PgConnectOptions,
    options: &PostgresOptions,
    place: &str,
) -> StoreResult<()> {
    let asking = async {
        let mut connection = PgConnection::connect_with(connect).await?;
        // Without a prepared statement, for poolers.
        let row = connection.fetch_one(sqlx::raw_sql(sql!("settings"))).await?;
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
            "the connection may be unencrypted, and the server's identity is not checked: set sslmode=verify-full in the URL, or sslmode=disable where the \
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

/// Returns whether the URL leaves it to a server on another machine whether the connection is encrypted.
fn can_be_read_on_the_way(connect: &PgConnectOptions) -> bool {
    let host = connect.get_host();
    let is_here = connect.get_socket().is_some()
        || host.starts_with('/')
        || host.eq_ignore_ascii_case("localhost")
        || host.trim_matches(['[', ']']).parse::<IpAddr>().is_ok_and(|address| address.is_loopback());
    !is_here && matches!(connect.get_ssl_mode(), PgSslMode::Allow | PgSslMode::Prefer)
}

#[cfg(test)]
mod tests;
