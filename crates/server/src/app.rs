//! State that is shared by all handlers.

use std::collections::HashMap;
use std::convert::Infallible;
use std::ops::Deref;
use std::sync::{Arc, Mutex, PoisonError};

use axum::extract::FromRequestParts;
use axum::http::Extensions;
use axum::http::request::Parts;
use milepost_core::actions::job::{ActionError, Inputs, JobAction};
use milepost_core::audit::Actor;
use milepost_core::dag::checked::Dag;
use milepost_core::error::StoreError;
use milepost_core::hide::Hidden;
use milepost_core::ident::JobId;
use milepost_core::listing::{JobView, QueueView};
use milepost_core::port::{Operated, Store};
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;

use crate::access::{Allowed, Hosts, Identity, Roles, Tokens};
use crate::announcer::Announcer;
use crate::api::protocol::registrations::Registrations;
use crate::api::protocol::tally::Tally;
use crate::console::cached_counts::CachedCounts;
use crate::console::paces::Paces;
use crate::console::series::Series;
use crate::intake::Intake;
use crate::large_reads::LargeReads;
use crate::limits::Counted;
use crate::metrics::Metrics;
use crate::oidc::Provider;
use crate::problem::{Code, Problem};
use crate::query_cache::Last;
use crate::readiness::Readiness;
use crate::reference::document::Reference;
use crate::scoped::{LimitedToken, ScopedStore};
use crate::session::sessions::Sessions;
use crate::status_entry::StatusEntry;
use crate::stream::feed::Feed;
use crate::stream::open_streams::OpenStreams;

/// The store and the state shared by all requests. Cheap to clone: every layer clones it for every request.
#[derive(Clone)]
pub(crate) struct App(Arc<Shared>);

/// The state of the router. Handlers cannot extract it: they take an [`App`], which contains only what the caller may see.
#[derive(Clone)]
pub(crate) struct Server(App);

impl From<App> for Server {
    fn from(app: App) -> Self {
        Self(app)
    }
}

impl FromRequestParts<Server> for App {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, Server(app): &Server) -> Result<Self, Infallible> {
        Ok(app.of_caller(&parts.extensions))
    }
}

/// The fields of [`App`].
#[derive(Clone)]
pub(crate) struct Shared {
    /// For reads. Changes made by a request use [`acting`](App::acting).
    pub(crate) store: Arc<dyn Store>,
    /// Data that users do not see, except those who may reveal it.
    pub(crate) hidden: Arc<Hidden>,
    /// Stores jobs that are created one by one.
    pub(crate) intake: Intake,
    /// Access control: tokens, sessions, the accepted host names of the server, and the role that each route needs.
    pub(crate) tokens: Arc<Tokens>,
    pub(crate) sessions: Arc<Sessions>,
    /// The provider with which people sign in.
    pub(crate) oidc: Option<Arc<Provider>>,
    pub(crate) hosts: Arc<Hosts>,
    pub(crate) roles: Arc<Roles>,
    /// Request rates and requests in flight of each client.
    pub(crate) limits: Arc<Counted>,
    /// The metrics of `/metrics`.
    pub(crate) metrics: Arc<Metrics>,
    /// All queues, as the API last returned them.
    pub(crate) queues: Arc<Last<Vec<QueueView>>>,
    /// The current problems.
    pub(crate) status: Arc<Last<Vec<StatusEntry>>>,
    /// Counters of the workers that use the worker protocol of this server.
    pub(crate) tally: Arc<Tally>,
    /// The workers that use the worker protocol of this server.
    pub(crate) registrations: Arc<Registrations>,
    /// State changes for the clients of `/v1/stream`.
    pub(crate) feed: Feed,
    /// The open streams.
    pub(crate) seats: OpenStreams,
    /// Held while the store is examined: one examination at a time.
    pub(crate) doctor: Arc<Semaphore>,
    /// Announces to workers what requests change.
    pub(crate) announcer: Announcer,
    /// Permits for requests that read something large.
    pub(crate) large: Arc<LargeReads>,
    /// The last result of the readiness check.
    pub(crate) readiness: Arc<Readiness>,
    /// The limits of the token for which this is the state; `None` for the state of all others.
    pub(crate) limited: Option<Arc<LimitedToken>>,
    /// The states of requests with limited tokens.
    pub(crate) limited_apps: Arc<LimitedApps>,
    /// Cached counts of the console.
    pub(crate) known: Arc<CachedCounts>,
    /// Rates of running bulk jobs, as measured by console pages.
    pub(crate) paces: Arc<Paces>,
    /// Settings that the console shows, without secrets.
    pub(crate) about: Arc<Vec<(&'static str, String)>>,
    /// The API reference, rendered at `/reference`.
    pub(crate) reference: Arc<Reference>,
    /// Recent activity for the charts of the console.
    pub(crate) series: Arc<Series>,
    /// Cancelled when the server shuts down.
    pub(crate) stop: CancellationToken,
}

impl Deref for App {
    type Target = Shared;

    fn deref(&self) -> &Shared {
        &self.0
    }
}

impl From<Shared> for App {
    fn from(shared: Shared) -> Self {
        Self(Arc::new(shared))
    }
}

/// The maximum number of limited tokens whose states are kept.
const LIMITED_MAX: usize = 256;

/// The state of requests with each limited token, by the token's prefix: with a store, and caches, that contain only its own objects.
#[derive(Default)]
pub(crate) struct LimitedApps(Mutex<HashMap<String, App>>);

impl App {
    /// Returns the state of a request: if its token is limited, one that contains only own objects.
    pub(crate) fn of_caller(&self, extensions: &Extensions) -> Self {
        match extensions.get::<Identity>().and_then(|identity| identity.limited.as_ref()) {
            Some(token) => self.limited_to(token),
            None => self.clone(),
        }
    }

    fn limited_to(&self, token: &Arc<LimitedToken>) -> Self {
        let mut apps = self.limited_apps.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = apps.get(&token.prefix) {
            return known.clone();
        }
        if apps.len() >= LIMITED_MAX {
            apps.clear();
        }
        let app = Self::from(Shared {
            store: Arc::new(ScopedStore::new(Arc::clone(&self.store), Arc::clone(token))),
            intake: self.intake.limited_to(Arc::clone(token)),
            queues: Arc::default(),
            status: Arc::default(),
            known: Arc::new(self.known.emptied()),
            paces: Arc::default(),
            series: Arc::default(),
            limited: Some(Arc::clone(token)),
            ..Shared::clone(self)
        });
        apps.insert(token.prefix.clone(), app.clone());
        app
    }

    /// Performs an action on a job, and announces the result to workers.
    ///
    /// # Errors
    /// Those of [`JobAction::perform`].
    pub(crate) async fn perform(
        &self,
        action: JobAction,
        job: JobId,
        inputs: &Inputs,
        store: &dyn Store,
    ) -> Result<Operated, ActionError> {
        let operated = action.perform(job, inputs, store).await?;
        self.announcer.operated(action, job, operated);
        Ok(operated)
    }

    /// Returns whether a caller may see hidden values on request.
    pub(crate) fn may_reveal(&self, caller: &Identity) -> bool {
        match caller.allowed {
            Allowed::Everything => self.hidden.can_be_revealed(),
            Allowed::Role(role) => self.hidden.may_reveal(role),
            Allowed::Nothing => false,
        }
    }

    /// Checks that a caller may define a DAG: one that reads hidden values could copy them to where they are shown.
    ///
    /// # Errors
    /// [`Code::RevealRefused`], unless the caller may see hidden values, or the version exists.
    pub(crate) async fn check_definer(&self, caller: &Identity, dag: &Dag) -> Result<(), Problem> {
        if !self.hidden.is_read_by(dag) || self.may_reveal(caller) {
            return Ok(());
        }
        let name = &dag.definition().name;
        if self.store.dag_versions(name).await?.iter().any(|known| known.version == dag.version()) {
            return Ok(());
        }
        let words = format!(
            "DAG {name:?} reads values that the configuration hides; it permits this only to the roles in `reveal` of its section [hide]"
        );
        Err(Problem::new(Code::RevealRefused, words))
    }

    /// Returns a job with its hidden values, after an entry in the audit.
    pub(crate) async fn reveal(
        &self,
        job: JobId,
        caller: &Identity,
        actor: Actor,
    ) -> Result<JobView, Problem> {
        if !self.may_reveal(caller) {
            let words = "the configuration permits this only to the roles in `reveal` of its section [hide]";
            return Err(Problem::new(Code::RevealRefused, words));
        }
        let revealed = self.acting(actor).reveal_job(job).await?;
        Ok(revealed.ok_or(StoreError::NoSuchJob(job))?)
    }

    /// Returns the store, acting for this actor. Use it for all changes that a request makes.
    pub(crate) fn acting(&self, actor: Actor) -> Arc<dyn Store> {
        self.store.acting_as(actor)
    }
}
