//! The role that each route needs. For the API, it is read from the OpenAPI document; other routes declare it when they are
//! added.

use std::collections::{HashMap, HashSet};

use axum::http::Method;
use milepost_core::token::Role;
use thiserror::Error;
use utoipa::openapi::path::{Operation, Parameter, ParameterIn};
use utoipa::openapi::{OpenApi, PathItem, RefOr};

/// The access that a route needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Needed {
    /// None: the route is public.
    Nothing,
    /// A token or session whose role includes this one.
    Role(Role),
}

/// What a route answers to a token that is limited to queues and kinds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Limited {
    /// Only what belongs to the token.
    Own,
    /// A refusal, for this reason.
    Refused(String),
}

/// The extension of an operation that states this in the OpenAPI document: `own`, or the reason of the refusal.
const LIMITED: &str = "x-limited-tokens";

/// The access that all routes need.
#[derive(Clone, Debug, Default)]
pub(crate) struct Roles {
    needed: HashMap<String, HashMap<Method, Needed>>,
    /// What each route answers to limited tokens. A route that states nothing is refused.
    limited: HashMap<(Method, String), Limited>,
    /// Operations of the document that have no query parameters.
    without_query: HashSet<(Method, String)>,
}

/// An operation of the document that does not name the role it needs.
#[derive(Debug, Error, PartialEq, Eq)]
#[error("{method} {path} does not declare the role it needs: add security((\"token\" = [\"operator\"]))")]
pub(crate) struct UnknownRole {
    method: Method,
    path: String,
}

impl Roles {
    /// Reads the roles of the operations of a document.
    pub(crate) fn of(document: &OpenApi) -> Result<Self, UnknownRole> {
        let mut roles = Self::default();
        for (path, item) in &document.paths.paths {
            for (method, operation) in operations(item) {
                let Some(role) = role(operation) else {
                    return Err(UnknownRole { method, path: path.clone() });
                };
                if !has_query(operation) {
                    roles.without_query.insert((method.clone(), path.clone()));
                }
                if let Some(limited) = limited(operation) {
                    roles.limit(method.clone(), path, limited);
                }
                roles.add(method, path, Needed::Role(role));
            }
        }
        Ok(roles)
    }

    /// Adds the access that a route needs.
    pub(crate) fn add(&mut self, method: Method, path: &str, needed: Needed) {
        self.needed.entry(path.to_owned()).or_default().insert(method, needed);
    }

    /// Adds what a route answers to limited tokens.
    pub(crate) fn limit(&mut self, method: Method, path: &str, limited: Limited) {
        self.limited.insert((method, path.to_owned()), limited);
    }

    /// Returns why a limited token may not use this route; `None`: it may.
    pub(crate) fn why_refused(&self, method: &Method, path: &str) -> Option<&str> {
        let method = if method == Method::HEAD { &Method::GET } else { method };
        match self.limited.get(&(method.clone(), path.to_owned())) {
            Some(Limited::Own) => None,
            Some(Limited::Refused(why)) => Some(why),
            None => Some("it covers the whole store"),
        }
    }

    /// Returns the access that a request to this route needs. HEAD needs the same as GET.
    pub(crate) fn needed(&self, method: &Method, path: &str) -> Option<Needed> {
        let method = if method == Method::HEAD { &Method::GET } else { method };
        self.needed.get(path)?.get(method).copied()
    }

    /// Returns whether the operation may have a query: its handler reads it, and refuses unknown parameters. Routes that are not in the
    /// document may have one.
    pub(crate) fn may_have_query(&self, method: &Method, path: &str) -> bool {
        let method = if method == Method::HEAD { &Method::GET } else { method };
        !self.without_query.contains(&(method.clone(), path.to_owned()))
    }

    /// Returns whether there is a route with this path.
    pub(crate) fn knows(&self, path: &str) -> bool {
        self.needed.contains_key(path)
    }
}

fn has_query(operation: &Operation) -> bool {
    let is_query = |parameter: &RefOr<Parameter>| match parameter {
        RefOr::T(parameter) => parameter.parameter_in == ParameterIn::Query,
        RefOr::Ref(_) => true,
    };
    operation.parameters.iter().flatten().any(is_query)
}

fn operations(item: &PathItem) -> impl Iterator<Item = (Method, &Operation)> {
    let operations = [
        (Method::GET, &item.get),
        (Method::PUT, &item.put),
        (Method::POST, &item.post),
        (Method::DELETE, &item.delete),
        (Method::PATCH, &item.patch),
        (Method::HEAD, &item.head),
        (Method::OPTIONS, &item.options),
        (Method::TRACE, &item.trace),
    ];
    operations.into_iter().filter_map(|(method, operation)| Some((method, operation.as_ref()?)))
}

/// Returns what an operation states about limited tokens.
fn limited(operation: &Operation) -> Option<Limited> {
    let stated = operation.extensions.as_ref()?.get(LIMITED)?.as_str()?;
    Some(if stated == "own" { Limited::Own } else { Limited::Refused(stated.to_owned()) })
}

/// Returns the only role that an operation names. utoipa exposes the names of a requirement only as JSON.
fn role(operation: &Operation) -> Option<Role> {
    let [requirement] = operation.security.as_deref()? else { return None };
    let requirement = serde_json::to_value(requirement).ok()?;
    match requirement.get("token")?.as_array()?.as_slice() {
        [role] => role.as_str()?.parse().ok(),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn document(security: &str) -> OpenApi {
        let operation = format!(r#"{{"responses": {{}}{security}}}"#);
        let text = format!(
            r#"{{"openapi": "3.1.0", "info": {{"title": "t", "version": "1"}}, "paths": {{"/a": {{"put": {operation}}}}}}}"#
        );
        serde_json::from_str(&text).unwrap()
    }

    #[test]
    fn a_route_needs_what_the_document_says() {
        let roles = Roles::of(&document(r#", "security": [{"token": ["operator"]}]"#)).unwrap();
        assert_eq!(roles.needed(&Method::PUT, "/a"), Some(Needed::Role(Role::Operator)));
        assert_eq!(roles.needed(&Method::GET, "/a"), None);
        assert!(roles.knows("/a") && !roles.knows("/b"));
    }

    #[test]
    fn a_limited_token_may_use_only_routes_that_state_it() {
        let security = r#", "security": [{"token": ["viewer"]}]"#;
        for (stated, why) in [
            (r#", "x-limited-tokens": "own""#, None),
            (r#", "x-limited-tokens": "it is large""#, Some("it is large")),
            (r#", "x-limited-tokens": 1"#, Some("it covers the whole store")),
            ("", Some("it covers the whole store")),
        ] {
            let roles = Roles::of(&document(&format!("{security}{stated}"))).unwrap();
            assert_eq!(roles.why_refused(&Method::PUT, "/a"), why, "{stated}");
        }
        assert!(Roles::default().why_refused(&Method::GET, "/b").is_some());
    }

    #[test]
    fn a_query_is_read_only_where_the_document_has_parameters() {
        let security = r#", "security": [{"token": ["viewer"]}]"#;
        let query = r#", "parameters": [{"name": "limit", "in": "query", "required": false}]"#;
        let path = r#", "parameters": [{"name": "id", "in": "path", "required": true}]"#;
        for (parameters, may) in [("", false), (path, false), (query, true)] {
            let roles = Roles::of(&document(&format!("{security}{parameters}"))).unwrap();
            assert_eq!(roles.may_have_query(&Method::PUT, "/a"), may, "{parameters}");
        }
        assert!(Roles::default().may_have_query(&Method::GET, "/jobs"), "pages are not in the document");
    }

    #[test]
    fn an_operation_that_names_no_role_is_refused() {
        for security in [
            "",
            r#", "security": []"#,
            r#", "security": [{}]"#,
            r#", "security": [{"token": []}]"#,
            r#", "security": [{"token": ["root"]}]"#,
            r#", "security": [{"token": ["viewer", "admin"]}]"#,
            r#", "security": [{"token": ["viewer"]}, {}]"#,
        ] {
            assert!(Roles::of(&document(security)).is_err(), "{security}");
        }
    }

    #[test]
    fn a_head_needs_what_its_get_needs() {
        let mut roles = Roles::default();
        roles.add(Method::GET, "/healthz", Needed::Nothing);
        assert_eq!(roles.needed(&Method::HEAD, "/healthz"), Some(Needed::Nothing));
        assert_eq!(roles.needed(&Method::POST, "/healthz"), None);
    }
}
