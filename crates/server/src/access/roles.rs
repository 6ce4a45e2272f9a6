//! Which role a route needs. Of the API this stands in the OpenAPI document, from where it is read; other routes say it when they are
//! added.

use std::collections::HashMap;

use axum::http::Method;
use milepost_core::token::Role;
use thiserror::Error;
use utoipa::openapi::path::Operation;
use utoipa::openapi::{OpenApi, PathItem};

/// What a route needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Needed {
    /// Nothing: anybody may ask.
    Nothing,
    /// A token or a session of a role that allows this one.
    Role(Role),
}

/// What every route needs.
#[derive(Clone, Debug, Default)]
pub(crate) struct Roles(HashMap<String, HashMap<Method, Needed>>);

/// An operation of the document that does not name the role it needs.
#[derive(Debug, Error, PartialEq, Eq)]
#[error("{method} {path} does not say which role it needs: security((\"token\" = [\"operator\"]))")]
pub(crate) struct UnknownRole {
    method: Method,
    path: String,
}

impl Roles {
    /// What the operations of a document need.
    pub(crate) fn of(document: &OpenApi) -> Result<Self, UnknownRole> {
        let mut roles = Self::default();
        for (path, item) in &document.paths.paths {
            for (method, operation) in operations(item) {
                let Some(role) = role(operation) else {
                    return Err(UnknownRole { method, path: path.clone() });
                };
                roles.add(method, path, Needed::Role(role));
            }
        }
        Ok(roles)
    }

    /// Says what another route needs.
    pub(crate) fn add(&mut self, method: Method, path: &str, needed: Needed) {
        self.0.entry(path.to_owned()).or_default().insert(method, needed);
    }

    /// What a request needs that met the route of this path. Who may GET may ask for the HEAD of it.
    pub(crate) fn needed(&self, method: &Method, path: &str) -> Option<Needed> {
        let method = if method == Method::HEAD { &Method::GET } else { method };
        self.0.get(path)?.get(method).copied()
    }

    /// Whether there is anything at this path.
    pub(crate) fn knows(&self, path: &str) -> bool {
        self.0.contains_key(path)
    }
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

/// The one role that an operation names. A requirement tells its names only as JSON.
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
