//! Who a request acts for. Everything that a request changes is audited in this name.

use std::convert::Infallible;

use axum::extract::FromRequestParts;
use axum::http::Extensions;
use axum::http::request::Parts;
use milepost_core::audit::Actor;
use serde::Deserialize;
use utoipa::IntoParams;

use crate::client::Caller;
use crate::problem::Problem;

/// Why, where no body can say so.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct Why {
    /// Why; stands in the audit.
    #[param(max_length = 1000)]
    pub(crate) reason: Option<String>,
}

/// Whoever sent the request.
#[derive(Clone, Debug)]
pub(crate) struct RequestActor(Actor);

impl RequestActor {
    /// That of a request that has passed the gate: the name of a token, or the address of somebody who was asked for none.
    pub(crate) fn of(extensions: &Extensions) -> Self {
        let named = match Caller::of(extensions) {
            Caller::Known(who) => Actor::new(who.as_ref()),
            Caller::Address(client) => Actor::new(format!("anonymous@{client}")),
        };
        Self(named.unwrap_or_else(|_| Actor::nobody()))
    }

    /// The actor, who gives no reason.
    pub(crate) fn actor(&self) -> Actor {
        self.0.clone()
    }

    /// The actor with the reason that the body gives.
    pub(crate) fn because(&self, reason: Option<&str>) -> Result<Actor, Problem> {
        let invalid = |e: milepost_core::audit::InvalidActor| {
            Problem::unprocessable("invalid_reason", e.to_string()).at("reason")
        };
        self.actor().because(reason).map_err(invalid)
    }

    /// The actor with the reason that the query gives.
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
