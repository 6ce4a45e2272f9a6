//! Who a request acts for. Everything that a request changes is audited in this name.

use std::convert::Infallible;
use std::net::{IpAddr, SocketAddr};

use axum::extract::{ConnectInfo, FromRequestParts};
use axum::http::request::Parts;
use milepost_core::audit::Actor;

use crate::problem::Problem;

/// Whoever sent the request.
#[derive(Clone, Debug)]
pub(crate) struct RequestActor(Actor);

impl RequestActor {
    /// Somebody who does not say who it is, at this address.
    fn anonymous(peer: Option<IpAddr>) -> Self {
        let named = match peer {
            Some(peer) => Actor::new(format!("anonymous@{peer}")),
            None => Actor::new("anonymous@loopback"),
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
}

impl<S: Send + Sync> FromRequestParts<S> for RequestActor {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Infallible> {
        // Whoever was found out to send it, before it came here.
        if let Some(known) = parts.extensions.get::<Self>() {
            return Ok(known.clone());
        }
        let peer = parts.extensions.get::<ConnectInfo<SocketAddr>>().map(|ConnectInfo(peer)| peer.ip());
        Ok(Self::anonymous(peer))
    }
}
