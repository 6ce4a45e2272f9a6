//! The frame of every page: user, navigation and flash message.

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
use super::format::{Badge, When};
use super::visible_text::visible;
use crate::access::Identity;
use crate::problem::Problem;
use crate::session::csrf_token::mask;

/// The user of the console and their permissions. If the server needs no tokens, every user may do everything.
#[derive(Clone, Debug)]
pub(crate) struct Viewer {
    /// The name, if known.
    pub(crate) name: Option<String>,
    /// Whether the user may change things.
    pub(crate) operates: bool,
    /// The queues and kinds that the user is limited to, in words.
    pub(crate) limited_to: Option<String>,
    /// The CSRF token that every form contains.
    pub(crate) csrf: String,
}

impl Viewer {
    /// An unidentified user.
    fn nobody() -> Self {
        Self { name: None, operates: false, limited_to: None, csrf: String::new() }
    }

    pub(super) fn of(identity: Option<&Identity>) -> Self {
        let Some(identity) = identity else { return Self::nobody() };
        Self {
            name: identity.name().map(str::to_owned),
            operates: identity.may(Role::Operator),
            limited_to: identity.limited.as_ref().map(|token| token.scope.to_string()),
            csrf: mask(&identity.csrf),
        }
    }
}

/// The data of the page frame.
#[derive(Clone, Debug)]
pub(crate) struct Page {
    pub(crate) viewer: Viewer,
    pub(crate) now: Timestamp,
    /// The path and query.
    pub(crate) url: String,
    /// The result of the last action.
    pub(crate) flash: Option<Flash>,
}

/// An entry of the navigation.
pub(crate) struct NavigationEntry {
    pub(crate) key: char,
    pub(crate) url: &'static str,
    pub(crate) title: &'static str,
    /// Whether a group of pages begins with it.
    pub(crate) begins: bool,
    /// The role that is needed to see it.
    role: Role,
    /// Whether limited tokens may not see it.
    of_whole_store: bool,
}

impl NavigationEntry {
    /// Creates an entry for all users.
    const fn of(key: char, url: &'static str, title: &'static str) -> Self {
        Self { key, url, title, begins: false, role: Role::Viewer, of_whole_store: false }
    }

    /// Hides it from limited tokens.
    const fn of_whole_store(self) -> Self {
        Self { of_whole_store: true, ..self }
    }

    /// Lets a group of pages begin with it.
    const fn begins(self) -> Self {
        Self { begins: true, ..self }
    }
}

const NAVIGATION: &[NavigationEntry] = &[
    NavigationEntry::of('o', "/", "Overview"),
    NavigationEntry::of('j', "/jobs", "Jobs").begins(),
    NavigationEntry::of('q', "/queues", "Queues"),
    NavigationEntry::of('k', "/kinds", "Kinds"),
    NavigationEntry::of('w', "/workers", "Workers"),
    NavigationEntry::of('s', "/schedules", "Schedules"),
    NavigationEntry::of('b', "/bulk", "Bulk").begins(),
    NavigationEntry::of('a', "/batches", "Batches"),
    NavigationEntry::of('e', "/events", "Events").begins().of_whole_store(),
    NavigationEntry::of('l', "/dead-letters", "Dead letters"),
    NavigationEntry { role: Role::Operator, ..NavigationEntry::of('u', "/audit", "Audit").begins() },
    NavigationEntry::of(',', "/settings", "Settings").of_whole_store(),
];

impl Page {
    /// Creates the frame of the page at this address.
    pub(super) fn of(uri: &Uri, flash: Option<Flash>, identity: Option<&Identity>) -> Self {
        let url = uri.path_and_query().map_or("/", PathAndQuery::as_str).to_owned();
        Self { viewer: Viewer::of(identity), now: Timestamp::now(), url, flash }
    }

    /// Creates a frame for what nobody can act on.
    pub(super) fn of_nobody() -> Self {
        Self { viewer: Viewer::nobody(), now: Timestamp::now(), url: "/".to_owned(), flash: None }
    }

    /// Returns the navigation for this user.
    pub(crate) fn places(&self) -> impl Iterator<Item = &'static NavigationEntry> {
        let (operates, is_limited) = (self.viewer.operates, self.viewer.limited_to.is_some());
        NAVIGATION
            .iter()
            .filter(move |place| operates || place.role == Role::Viewer)
            .filter(move |place| !(is_limited && place.of_whole_store))
    }

    /// Returns whether the page is at this entry or below it.
    pub(crate) fn is_at(&self, place: &NavigationEntry) -> bool {
        let path = self.url.split('?').next().unwrap_or_default();
        // The list of batches also lists their DAGs, and the list of runs their definitions.
        let path = match path {
            path if path.starts_with("/dags/") => "/batches",
            path if path.starts_with("/bulk-definitions/") => "/bulk",
            path => path,
        };
        path == place.url
            || (place.url != "/" && path.strip_prefix(place.url).is_some_and(|rest| rest.starts_with('/')))
    }

    pub(crate) fn asset(&self, name: &str) -> String {
        assets::url(name)
    }

    pub(crate) const fn when(&self, at: &Timestamp) -> When {
        When { at: *at, now: self.now }
    }

    /// Formats a time that may be missing.
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

/// Renders a page. Removes the flash message, which the page has shown.
pub(crate) fn draw(template: &impl Template) -> Response {
    match template.render() {
        Ok(html) => {
            let mut response = Html(visible(html.into()).into_owned()).into_response();
            response.extensions_mut().insert(Said::Here);
            response.headers_mut().insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
            response
        }
        Err(error) => {
            tracing::error!(%error, "a page could not be rendered");
            StatusCode::INTERNAL_SERVER_ERROR.into_response()
        }
    }
}

/// The result of a page handler. A problem is [rendered as a page](super::explain()).
pub(crate) type Drawn = Result<Response, Problem>;
