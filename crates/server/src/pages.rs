//! Routes that are not in the OpenAPI document, each with the access it needs.

use axum::Router;
use axum::http::Method;
use axum::routing::MethodRouter;
use tower_http::compression::CompressionLayer;

use crate::access::{Limited, Needed, Roles};
#[cfg(doc)]
use crate::app::App;
use crate::app::Server;

/// Routes with the access they need. A route that is added to the server in another way is refused for everyone.
#[derive(Default)]
pub(crate) struct Pages {
    router: Router<Server>,
    needs: Vec<(Method, &'static str, Needed)>,
    /// Routes that show and change only own objects of a limited token. It may not use the others.
    own: Vec<(Method, &'static str)>,
}

impl Pages {
    /// Adds a route for one method.
    #[must_use]
    pub(crate) fn add(
        mut self,
        method: Method,
        path: &'static str,
        needed: Needed,
        route: MethodRouter<Server>,
    ) -> Self {
        self.router = self.router.route(path, route);
        self.needs.push((method, path, needed));
        self
    }

    /// Adds a route for one method that limited tokens may use: its handler reads and changes only what the [`App`] of the request contains.
    #[must_use]
    pub(crate) fn add_own(
        mut self,
        method: Method,
        path: &'static str,
        needed: Needed,
        route: MethodRouter<Server>,
    ) -> Self {
        self.own.push((method.clone(), path));
        self.add(method, path, needed, route)
    }

    /// Compresses the responses for clients that accept it.
    #[must_use]
    pub(crate) fn compressed(mut self) -> Self {
        self.router = self.router.layer(CompressionLayer::new());
        self
    }

    /// Adds the routes of `others`.
    #[must_use]
    pub(crate) fn merge(mut self, others: Self) -> Self {
        self.router = self.router.merge(others.router);
        self.needs.extend(others.needs);
        self.own.extend(others.own);
        self
    }

    /// Returns the access that each route needs.
    pub(crate) fn needs(self) -> Vec<(Method, &'static str, Needed)> {
        self.needs
    }

    /// Registers the needed access of each route and returns the router.
    pub(crate) fn into_router(self, roles: &mut Roles) -> Router<Server> {
        for (method, path, needed) in self.needs {
            roles.add(method, path, needed);
        }
        for (method, path) in self.own {
            roles.limit(method, path, Limited::Own);
        }
        self.router
    }
}
