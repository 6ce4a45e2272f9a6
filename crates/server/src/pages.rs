//! Routes that are not in the OpenAPI document, each with what it needs.

use axum::Router;
use axum::http::Method;
use axum::routing::MethodRouter;
use tower_http::compression::CompressionLayer;

use crate::access::{Needed, Roles};
use crate::app::App;

/// Such routes. A route that is merged into the server beside these is refused to everybody.
#[derive(Default)]
pub(crate) struct Pages {
    router: Router<App>,
    needs: Vec<(Method, &'static str, Needed)>,
}

impl Pages {
    /// Adds a route of one method.
    #[must_use]
    pub(crate) fn add(
        mut self,
        method: Method,
        path: &'static str,
        needed: Needed,
        route: MethodRouter<App>,
    ) -> Self {
        self.router = self.router.route(path, route);
        self.needs.push((method, path, needed));
        self
    }

    /// Has them sent compressed to those who can read that.
    #[must_use]
    pub(crate) fn compressed(mut self) -> Self {
        self.router = self.router.layer(CompressionLayer::new());
        self
    }

    /// Adds others.
    #[must_use]
    pub(crate) fn merge(mut self, others: Self) -> Self {
        self.router = self.router.merge(others.router);
        self.needs.extend(others.needs);
        self
    }

    /// What each of them needs.
    pub(crate) fn needs(self) -> Vec<(Method, &'static str, Needed)> {
        self.needs
    }

    /// The routes alone, once it is said what they need.
    pub(crate) fn into_router(self, roles: &mut Roles) -> Router<App> {
        for (method, path, needed) in self.needs {
            roles.add(method, path, needed);
        }
        self.router
    }
}
