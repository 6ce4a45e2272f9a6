//! The actor of a request, in whose name its changes are audited.

use std::convert::Infallible;

use axum::extract::FromRequestParts;
use axum::http::Extensions;
use axum::http::request::Parts;
use milepost_core::audit::Actor;
use serde::Deserialize;
use utoipa::IntoParams;

use crate::client::Caller;
use crate::problem::{Code, Problem};

/// The reason, for operations without a body.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct Why {
    /// The reason, for the audit log.
    #[param(max_length = 1000)]
    pub(crate) reason: Option<String>,
}

/// The actor of the request.
#[derive(Clone, Debug)]
pub(crate) struct RequestActor(Actor);

impl RequestActor {
    /// Returns the actor of a request that has passed the gate: the name of its token, or `anonymous@` and its address if it
    /// needed no token.
    pub(crate) fn of(extensions: &Extensions) -> Self {
        let named = match Caller::of(extensions) {
            Caller::Known(who) => Actor::new(who.as_ref()),
            Caller::Address(client) => Actor::new(format!("anonymous@{client}")),
        };
        Self(named.unwrap_or_else(|_| Actor::nobody()))
    }

    /// Returns the actor without a reason.
    pub(crate) fn actor(&self) -> Actor {
        self.0.clone()
    }

    /// Returns the actor with the reason from the body.
    pub(crate) fn because(&self, reason: Option<&str>) -> Result<Actor, Problem> {
        let invalid = |e: milepost_core::audit::InvalidActor| {
            Problem::new(Code::InvalidReason, e.to_string()).at("reason")
        };
        self.actor().because(reason).map_err(invalid)
    }

    /// Returns the actor with the reason from the query.
    pub(crate) fn because_in_query(&self, reason: Option<&str>) -> Result<Actor, Problem> {
        self.because(reason).map_err(|problem| problem.at("query reason"))
    }
}

impl<S: Send + Sync> FromRequestParts<S> for RequestActor {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Infallible> {
        Ok(Self::of(&parts.extensions))
    }
}
