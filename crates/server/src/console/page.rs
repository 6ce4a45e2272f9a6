//! What every page has: who looks, where it is in the menu, what to say at its top.

use std::convert::Infallible;

use askama::Template;
use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use axum::http::uri::PathAndQuery;
use axum::http::{HeaderValue, StatusCode, Uri, header};
use axum::response::{Html, IntoResponse, Response};
use jiff::Timestamp;
use milepost_core::token::Role;

use super::assets;
use super::flash::{Flash, Said};
use super::words::{Badge, When};
use crate::access::Identity;
use crate::problem::Problem;
use crate::session::mask;

/// Who looks at the console, and what they may do. Where no token is asked for everybody may do everything.
#[derive(Clone, Debug)]
pub(crate) struct Viewer {
    /// What they are called, if that is known.
    pub(crate) name: Option<String>,
    /// Whether they may change things.
    pub(crate) operates: bool,
    /// What every form carries back, so that no other site can send it.
    pub(crate) csrf: String,
}

impl Viewer {
    /// Nobody of whom anything is known.
    fn nobody() -> Self {
        Self { name: None, operates: false, csrf: String::new() }
    }

    pub(super) fn of(identity: Option<&Identity>) -> Self {
        let Some(identity) = identity else { return Self::nobody() };
        Self {
            name: identity.token.as_ref().map(|_| identity.who.trim_start_matches("token:").to_owned()),
            operates: identity.may(Role::Operator),
            csrf: mask(&identity.csrf),
        }
    }
}

/// What the frame of a page needs.
#[derive(Clone, Debug)]
pub(crate) struct Page {
    pub(crate) viewer: Viewer,
    pub(crate) now: Timestamp,
    /// Its path and query.
    pub(crate) url: String,
    /// What became of what was done last.
    pub(crate) flash: Option<Flash>,
}

/// A place in the menu.
pub(crate) struct Place {
    pub(crate) key: char,
    pub(crate) url: &'static str,
    pub(crate) title: &'static str,
    /// Who is shown it.
    role: Role,
}

impl Place {
    /// One for all who may look.
    const fn of(key: char, url: &'static str, title: &'static str) -> Self {
        Self { key, url, title, role: Role::Viewer }
    }
}

const PLACES: &[Place] = &[
    Place::of('o', "/", "Overview"),
    Place::of('j', "/jobs", "Jobs"),
    Place::of('q', "/queues", "Queues"),
    Place::of('w', "/workers", "Workers"),
    Place::of('s', "/schedules", "Schedules"),
    Place::of('b', "/bulk", "Bulk"),
    Place::of('a', "/batches", "Batches"),
    Place::of('e', "/events", "Events"),
    Place::of('l', "/dead-letters", "Dead letters"),
    Place { role: Role::Operator, ..Place::of('u', "/audit", "Audit") },
    Place::of(',', "/settings", "Settings"),
];

impl Page {
    /// The page at this address for somebody.
    pub(super) fn of(uri: &Uri, flash: Option<Flash>, identity: Option<&Identity>) -> Self {
        let url = uri.path_and_query().map_or("/", PathAndQuery::as_str).to_owned();
        Self { viewer: Viewer::of(identity), now: Timestamp::now(), url, flash }
    }

    /// The menu, as whoever looks has it.
    pub(crate) fn places(&self) -> impl Iterator<Item = &'static Place> {
        let operates = self.viewer.operates;
        PLACES.iter().filter(move |place| operates || place.role == Role::Viewer)
    }

    /// Whether the page is at this place of the menu, or below it.
    pub(crate) fn is_at(&self, place: &Place) -> bool {
        let path = self.url.split('?').next().unwrap_or_default();
        path == place.url
            || (place.url != "/" && path.strip_prefix(place.url).is_some_and(|rest| rest.starts_with('/')))
    }

    pub(crate) fn asset(&self, name: &str) -> String {
        assets::url(name)
    }

    pub(crate) const fn when(&self, at: &Timestamp) -> When {
        When { at: *at, now: self.now }
    }

    /// A time, or nothing.
    pub(crate) fn maybe(&self, at: &Option<Timestamp>) -> MaybeWhen {
        MaybeWhen(at.map(|at| self.when(&at)))
    }

    pub(crate) const fn badge(&self, state: &'static str) -> Badge {
        Badge(state)
    }
}

/// A time that may be missing.
pub(crate) struct MaybeWhen(Option<When>);

impl std::fmt::Display for MaybeWhen {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.0 {
            Some(when) => when.fmt(f),
            None => f.write_str("<span class=\"none\">–</span>"),
        }
    }
}

impl askama::filters::HtmlSafe for MaybeWhen {}

impl<S: Send + Sync> FromRequestParts<S> for Page {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Infallible> {
        Ok(Self::of(&parts.uri, parts.extensions.get().cloned(), parts.extensions.get()))
    }
}

/// Draws a page. What was said at its top is not said again.
pub(crate) fn draw(template: &impl Template) -> Response {
    match template.render() {
        Ok(html) => {
            let mut response = Html(html).into_response();
            response.extensions_mut().insert(Said::Here);
            response.headers_mut().insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
            response
        }
        Err(error) => {
            tracing::error!(%error, "a page could not be drawn");
            StatusCode::INTERNAL_SERVER_ERROR.into_response()
        }
    }
}

/// What a page answers; a problem is [explained](super::explain()).
pub(crate) type Drawn = Result<Response, Problem>;
