//! The HTTP server of Milepost: API, console, metrics and health checks.
//!
//! [`serve`] answers requests from a store until it is stopped. The OpenAPI document is generated from the routes and served at
//! `/openapi.json`.

mod access;
mod actor;
mod announcer;
mod api;
mod app;
mod body;
mod client;
mod console;
mod exposure;
#[cfg(feature = "fuzzing")]
#[doc(hidden)]
pub mod fuzzing;
mod headers;
mod health;
mod hiding;
mod idempotency;
mod intake;
mod keeping;
mod large_reads;
mod limits;
mod listen;
pub mod metrics;
mod oidc;
mod openapi;
mod operate_in_bulk;
mod pages;
mod params;
mod problem;
mod problem_code;
mod proxies;
mod query_cache;
mod readiness;
mod redirect;
mod reference;
mod replication;
mod scoped;
mod session;
mod status_entry;
mod store_timeout;
mod stream;
mod target_file;
mod trace;

use std::sync::Arc;
use std::time::Duration;

use axum::extract::DefaultBodyLimit;
use axum::http::{Method, Uri};
use axum::routing::get;
use axum::{Router, middleware};
use milepost_core::error::StoreError;
use milepost_core::hide::Hidden;
use milepost_core::port::{Coordination, Store};
use milepost_core::token::Role;
use thiserror::Error;
use tokio::net::TcpListener;
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;
use utoipa_axum::router::OpenApiRouter;

pub use crate::access::AccessOptions;
use crate::access::{Hosts, Needed, Roles, Tokens};
use crate::announcer::Announcer;
use crate::api::protocol::registrations::Registrations;
use crate::api::protocol::tally::Tally;
use crate::app::{App, Server, Shared};
use crate::console::cached_counts::CachedCounts;
use crate::console::series::Series;
pub use crate::console::{alerts, status};
pub use crate::exposure::{Exposed, Exposure};
use crate::hiding::HidingStore;
use crate::intake::Intake;
use crate::large_reads::LargeReads;
use crate::limits::Counted;
pub use crate::limits::Limits;
use crate::listen::Tls;
pub use crate::listen::{TlsError, TlsFiles};
use crate::metrics::{Counts, Metrics};
use crate::oidc::Provider;
pub use crate::oidc::{InvalidOidc, OidcOptions, check_external_url, check_issuer};
use crate::pages::Pages;
use crate::problem::Code;
pub use crate::problem::Problem;
pub use crate::proxies::{ForwardedHeader, InvalidProxy, TrustedProxies};
use crate::query_cache::Last;
use crate::reference::document::Reference;
use crate::session::sessions::Sessions;
pub use crate::status_entry::{StatusEntry, Urgency};
pub use crate::stream::StreamLimits;
use crate::stream::feed::Feed;
use crate::stream::open_streams::OpenStreams;

/// The configuration of a server.
pub struct Options {
    /// Counters of other parts of this process, for `/metrics`.
    pub counts: Vec<Box<dyn Counts>>,
    /// Settings that the console shows, with their names, without secrets.
    pub about: Vec<(&'static str, String)>,
    /// The helper that announces to workers what requests change.
    pub coordination: Option<Arc<dyn Coordination>>,
    /// Whether the server provides the API and the console in addition to health checks and metrics.
    pub api: bool,
    /// Data that users do not see.
    pub hidden: Hidden,
    /// Limits on event streams.
    pub streams: StreamLimits,
    /// Access control.
    pub access: AccessOptions,
    /// Limits on requests.
    pub limits: Limits,
    /// How long a console page waits for a count before it shows the last known one. Default: 50 ms.
    pub page_wait: Duration,
    /// The TLS certificate and key; without them, the server uses plain HTTP.
    pub tls: Option<TlsFiles>,
}

impl Default for Options {
    fn default() -> Self {
        let (access, limits) = (AccessOptions::default(), Limits::default());
        let streams = StreamLimits::default();
        let page_wait = console::PAGE_WAIT;
        Self {
            counts: Vec::new(),
            about: Vec::new(),
            coordination: None,
            api: true,
            hidden: Hidden::default(),
            streams,
            access,
            limits,
            page_wait,
            tls: None,
        }
    }
}

impl std::fmt::Debug for Options {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Options").field("api", &self.api).finish_non_exhaustive()
    }
}

/// The pause before the store is asked again for tokens at the start.
const ASK_AGAIN: Duration = Duration::from_millis(500);

/// The reason why a server cannot start or continue.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum ServerError {
    /// Other machines can reach its address, and access is not restricted.
    #[error("{0}")]
    Exposed(#[from] Exposed),
    /// TLS cannot be set up.
    #[error("{0}")]
    Tls(#[from] TlsError),
    /// The query whether the store has tokens failed.
    #[error("the store cannot be queried for tokens")]
    Store(#[from] StoreError),
    /// The settings of sign-in with a provider cannot be used.
    #[error("{0}")]
    Oidc(#[from] InvalidOidc),
    /// The address of the listener cannot be determined.
    #[error("the address of the listener cannot be determined")]
    Address(#[source] std::io::Error),
    /// A route of the API has no role: a defect.
    #[error("{0}")]
    Route(String),
}

/// Builds all routes. Must be called within a Tokio runtime.
fn router(store: Arc<dyn Store>, options: Options, stop: CancellationToken) -> Result<Router, ServerError> {
    let Options { mut counts, about, coordination, api, hidden, streams, access, limits, page_wait, tls } =
        options;
    let hidden = Arc::new(hidden);
    let (series, known) = (Arc::<Series>::default(), Arc::new(CachedCounts::new(page_wait)));
    let (seats, feed, tally) = (OpenStreams::new(streams), Feed::default(), Arc::<Tally>::default());
    counts.push(Box::new(seats.clone()));
    if api {
        counts.push(Box::new(Arc::clone(&tally)));
        feed.start(Arc::clone(&store), stop.clone());
        series.start(&store, Arc::clone(&known), &stop);
    }
    let console = if api { console::routes() } else { Pages::default() };
    let api = if api { api::routes().merge(stream::routes()) } else { OpenApiRouter::new() };
    let (routes, document) = OpenApiRouter::with_openapi(openapi::document()).merge(api).split_for_parts();
    let mut roles = Roles::of(&document).map_err(|unknown| ServerError::Route(unknown.to_string()))?;
    let document = openapi::text(document);
    let reference = serde_json::from_slice(&document.1).map(|document| Reference::of(&document));
    let pages = pages().merge(console).add(
        Method::GET,
        "/openapi.json",
        Needed::Nothing,
        get(move || std::future::ready(document.clone())),
    );
    let routes = routes.merge(pages.into_router(&mut roles));
    let speaks_tls = tls.is_some();
    let oidc = access.oidc.clone().map(Provider::new).transpose()?;
    let is_secure = speaks_tls || access.behind_tls || oidc.as_ref().is_some_and(Provider::is_reached_by_tls);
    let app = App::from(Shared {
        intake: Intake::start(Arc::clone(&store)),
        tokens: Arc::new(Tokens::new(Arc::clone(&store), access.require_tokens || oidc.is_some())),
        oidc: oidc.map(Arc::new),
        sessions: Arc::new(Sessions::new(access.sessions, is_secure)),
        hosts: Arc::new(Hosts::new(&access)),
        limits: Arc::new(Counted::new(&limits)),
        roles: Arc::new(roles),
        metrics: Arc::new(Metrics::new(counts)),
        queues: Arc::new(Last::default()),
        status: Arc::new(Last::default()),
        tally,
        registrations: Arc::new(Registrations::default()),
        feed,
        seats,
        store: HidingStore::before(store, &hidden),
        hidden,
        doctor: Arc::new(Semaphore::new(1)),
        announcer: Announcer::start(coordination, stop.clone()),
        large: Arc::new(LargeReads::new()),
        readiness: Arc::default(),
        limited: None,
        limited_apps: Arc::default(),
        known,
        paces: Arc::default(),
        about: Arc::new(about),
        // This document was serialized above, so it can be parsed.
        reference: Arc::new(reference.unwrap_or_default()),
        series,
        stop,
    });
    Ok(with_layers(routes, app, limits.body_bytes, speaks_tls))
}

/// Adds what happens before and after every request.
fn with_layers(routes: Router<Server>, app: App, body_bytes: usize, speaks_tls: bool) -> Router {
    routes
        .fallback(no_such_path)
        .layer(DefaultBodyLimit::max(body_bytes))
        .layer(middleware::from_fn_with_state(app.clone(), replication::when_replicated))
        .layer(middleware::from_fn_with_state(app.clone(), console::look_anew))
        .layer(middleware::from_fn_with_state(app.announcer.clone(), announcer::announce_changes))
        .layer(middleware::from_fn_with_state(body_bytes, session::csrf_check::guard_forms))
        .layer(middleware::from_fn_with_state(app.clone(), limits::bound::bound))
        .layer(middleware::from_fn_with_state(app.clone(), access::gate))
        .layer(middleware::from_fn_with_state(app.clone(), console::explain))
        .layer(middleware::from_fn_with_state(app.clone(), console::carry))
        .layer(middleware::from_fn_with_state(app.clone(), access::guard))
        .layer(middleware::from_fn_with_state(speaks_tls, headers::add))
        .layer(middleware::from_fn(trace::trace))
        .with_state(Server::from(app))
}

/// Routes that are not in the OpenAPI document.
fn pages() -> Pages {
    Pages::default()
        .add(Method::GET, "/healthz", Needed::Nothing, get(health::live))
        .add(Method::GET, "/readyz", Needed::Nothing, get(health::ready))
        .add(Method::GET, "/metrics", Needed::Role(Role::Viewer), get(metrics::scrape::get))
        .merge(session::sign_in::routes())
        .merge(oidc::sign_in::routes())
}

/// Returns the routes that are not in the OpenAPI document: method, path, and the role that is needed, if any.
#[must_use]
pub fn other_routes() -> Vec<(Method, &'static str, Option<Role>)> {
    let pages = pages().merge(console::routes());
    let routes = pages.needs().into_iter().chain([(Method::GET, "/openapi.json", Needed::Nothing)]);
    let role = |needed| match needed {
        Needed::Nothing => None,
        Needed::Role(role) => Some(role),
    };
    routes.map(|(method, path, needed)| (method, path, role(needed))).collect()
}

async fn no_such_path(uri: Uri) -> Problem {
    Problem::new(
        Code::NoSuchPath,
        format!("there is no resource at {}; /openapi.json lists all paths", uri.path()),
    )
}

/// Answers requests until `stop` is cancelled, then completes the requests in flight.
///
/// # Errors
/// [`ServerError`] when the server may not listen on its address, or its configuration cannot be applied. In that case no request
/// has been answered.
pub async fn serve(
    listener: TcpListener,
    store: Arc<dyn Store>,
    mut options: Options,
    stop: CancellationToken,
) -> Result<(), ServerError> {
    let address = listener.local_addr().map_err(ServerError::Address)?;
    let asking = options.exposure_when_available(store.as_ref());
    let Some(exposure) = stop.run_until_cancelled(asking).await.transpose()? else { return Ok(()) };
    exposure.check(address)?;
    // People sign in, so that it is never open.
    options.access.open_to_all &= options.access.oidc.is_none();
    // If only this machine reaches the server, the flag changes nothing: only names of this machine and allowed ones are answered.
    options.access.open_to_all &= exposure.is_reached(address);
    // Decided once, at the start: revoking the last token must not open the address to everyone.
    options.access.require_tokens |= exposure.is_reached(address) && !options.access.open_to_all;
    let tls = options.tls.clone().map(Tls::read).transpose()?;
    if let Some(tls) = tls.clone() {
        tokio::spawn(tls.follow(stop.clone()));
    }
    let (limits, proxies) = (options.limits.clone(), options.access.trusted_proxies.clone());
    let router = router(store, options, stop.clone())?;
    listen::serve(listener, router, &limits, proxies, tls, stop).await;
    Ok(())
}

impl Options {
    /// As [`exposure`](Self::exposure), but asks again while the store cannot be used: an outage at this moment does not end the process.
    async fn exposure_when_available(&self, store: &dyn Store) -> Result<Exposure, StoreError> {
        loop {
            match self.exposure(store).await {
                Err(error) if error.is_transient() => {
                    tracing::warn!(
                        error = error.chain(),
                        "the store cannot be asked for tokens; trying again"
                    );
                    tokio::time::sleep(ASK_AGAIN).await;
                }
                answered => return answered,
            }
        }
    }

    /// Returns how the server is protected against other clients on the network.
    ///
    /// # Errors
    /// Reading from the store whether it has tokens fails.
    pub async fn exposure(&self, store: &dyn Store) -> Result<Exposure, StoreError> {
        Ok(Exposure {
            asks_for_tokens: self.access.require_tokens
                || self.access.oidc.is_some()
                || store.has_tokens().await?,
            insecure_no_tokens: self.access.open_to_all,
            tls: self.tls.is_some(),
            insecure_no_tls: self.access.behind_tls,
            proxied: !self.access.trusted_proxies.is_empty(),
        })
    }
}
