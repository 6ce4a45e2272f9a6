//! What every handler has.

use std::ops::Deref;
use std::sync::Arc;

use milepost_core::audit::Actor;
use milepost_core::listing::QueueView;
use milepost_core::port::Store;
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;

use crate::access::{Hosts, Roles, Tokens};
use crate::api::Tally;
use crate::console::series::Series;
use crate::console::{Known, Paces};
use crate::health::Readiness;
use crate::intake::Intake;
use crate::last::Last;
use crate::limits::Counted;
use crate::metrics::Metrics;
use crate::reference::Reference;
use crate::session::Sessions;
use crate::stream::{Feed, Seats};

/// The store, and what is shared by all requests. Cheap to clone: every layer does so for each of them.
#[derive(Clone)]
pub(crate) struct App(Arc<Shared>);

/// What there is one of.
pub(crate) struct Shared {
    /// For looking; what a request changes goes through [`acting`](App::acting).
    pub(crate) store: Arc<dyn Store>,
    /// Where single creates go.
    pub(crate) intake: Intake,
    /// Who may ask, by tokens and by sessions, under which names of the server, and for what.
    pub(crate) tokens: Arc<Tokens>,
    pub(crate) sessions: Arc<Sessions>,
    pub(crate) hosts: Arc<Hosts>,
    pub(crate) roles: Arc<Roles>,
    /// What clients have asked for lately.
    pub(crate) limits: Arc<Counted>,
    /// The numbers of `/metrics`.
    pub(crate) metrics: Arc<Metrics>,
    /// All queues, as the API told of them last.
    pub(crate) queues: Last<Vec<QueueView>>,
    /// What workers that speak to this server do.
    pub(crate) tally: Arc<Tally>,
    /// What happens, for who watches.
    pub(crate) feed: Feed,
    /// How many watch.
    pub(crate) seats: Seats,
    /// Whose turn it is to examine the store: one at a time.
    pub(crate) doctor: Arc<Semaphore>,
    /// What the store last said to who asked whether it answers.
    pub(crate) readiness: Arc<Readiness>,
    /// What pages of the console share.
    pub(crate) known: Arc<Known>,
    /// How fast bulk jobs go, as pages saw it.
    pub(crate) paces: Arc<Paces>,
    /// What this server was started with, for people; without secrets.
    pub(crate) about: Arc<Vec<(&'static str, String)>>,
    /// What the API takes and answers, for people.
    pub(crate) reference: Arc<Reference>,
    /// What happened lately, for the charts of the console.
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
    /// The store, as the actor of a request uses it: for whatever the request changes.
    pub(crate) fn acting(&self, actor: Actor) -> Arc<dyn Store> {
        self.store.acting_as(actor)
    }
}
