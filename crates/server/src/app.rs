//! State that is shared by all handlers.

use std::ops::Deref;
use std::sync::Arc;

use milepost_core::actions::job::{ActionError, Inputs, JobAction};
use milepost_core::audit::Actor;
use milepost_core::ident::JobId;
use milepost_core::listing::QueueView;
use milepost_core::port::{Operated, Store};
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;

use crate::access::{Hosts, Roles, Tokens};
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
use crate::query_cache::Last;
use crate::readiness::Readiness;
use crate::reference::document::Reference;
use crate::session::sessions::Sessions;
use crate::status_entry::StatusEntry;
use crate::stream::feed::Feed;
use crate::stream::open_streams::OpenStreams;

/// The store and the state shared by all requests. Cheap to clone: every layer clones it for every request.
#[derive(Clone)]
pub(crate) struct App(Arc<Shared>);

/// The fields of [`App`].
pub(crate) struct Shared {
    /// For reads. Changes made by a request use [`acting`](App::acting).
    pub(crate) store: Arc<dyn Store>,
    /// Stores jobs that are created one by one.
    pub(crate) intake: Intake,
    /// Access control: tokens, sessions, the accepted host names of the server, and the role that each route needs.
    pub(crate) tokens: Arc<Tokens>,
    pub(crate) sessions: Arc<Sessions>,
    /// The provider with which people sign in.
    pub(crate) oidc: Option<Provider>,
    pub(crate) hosts: Arc<Hosts>,
    pub(crate) roles: Arc<Roles>,
    /// Request rates and requests in flight of each client.
    pub(crate) limits: Arc<Counted>,
    /// The metrics of `/metrics`.
    pub(crate) metrics: Arc<Metrics>,
    /// All queues, as the API last returned them.
    pub(crate) queues: Last<Vec<QueueView>>,
    /// The current problems.
    pub(crate) status: Last<Vec<StatusEntry>>,
    /// Counters of the workers that use the worker protocol of this server.
    pub(crate) tally: Arc<Tally>,
    /// The workers that use the worker protocol of this server.
    pub(crate) registrations: Registrations,
    /// State changes for the clients of `/v1/stream`.
    pub(crate) feed: Feed,
    /// The open streams.
    pub(crate) seats: OpenStreams,
    /// Held while the store is examined: one examination at a time.
    pub(crate) doctor: Arc<Semaphore>,
    /// Announces to workers what requests change.
    pub(crate) announcer: Announcer,
    /// Permits for requests that read something large.
    pub(crate) large: LargeReads,
    /// The last result of the readiness check.
    pub(crate) readiness: Arc<Readiness>,
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

impl App {
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

    /// Returns the store, acting for this actor. Use it for all changes that a request makes.
    pub(crate) fn acting(&self, actor: Actor) -> Arc<dyn Store> {
        self.store.acting_as(actor)
    }
}
