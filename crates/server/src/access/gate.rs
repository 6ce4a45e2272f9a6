//! The middleware that authenticates and authorizes every request.

use axum::extract::{MatchedPath, Request, State};
use axum::http::{HeaderMap, HeaderValue, Method, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};

use super::credentials::bearer;
use super::{Allowed, Identity, Needed, Recalled, check};
use crate::app::App;
use crate::client::{Caller, Client};
use crate::large_reads::CALLER;
use crate::problem::{Code, Problem};
use crate::session::{self, Signed};

/// Passes a request on if its caller has the role that the route needs. The route finds an [`Identity`] in the extensions.
pub(crate) async fn gate(State(app): State<App>, request: Request, next: Next) -> Response {
    // A request that matches no route gets that response, whoever the caller is.
    let Some(path) = request.extensions().get::<MatchedPath>().cloned() else {
        return next.run(request).await;
    };
    let needed = match needed(&app, request.method(), path.as_str()) {
        Ok(needed) => needed,
        Err(problem) => return problem.into_response(),
    };
    let (admitted, cookie) = admit(&app, request, needed).await;
    let admitted = admitted.and_then(|request| check_limited(&app, path.as_str(), request));
    let admitted = admitted.and_then(|request| check_query(&app, path.as_str(), request));
    let mut response = match admitted {
        Ok(request) => CALLER.scope(Caller::of(request.extensions()), next.run(request)).await,
        Err(problem) => problem.into_response(),
    };
    if let Some(cookie) = cookie {
        response.headers_mut().append(header::SET_COOKIE, cookie);
    }
    response
}

fn needed(app: &App, method: &Method, path: &str) -> Result<Needed, Problem> {
    app.roles.needed(method, path).ok_or_else(|| {
        if app.roles.knows(path) {
            let words =
                format!("{path} does not support {method}; /openapi.json lists the supported methods");
            Problem::new(Code::MethodNotAllowed, words)
        } else {
            Problem::new(Code::NoRoleKnown, format!("no role is defined for {path}"))
        }
    })
}

/// Refuses a limited token, unless the route states that it answers with own objects only.
fn check_limited(app: &App, path: &str, request: Request) -> Result<Request, Problem> {
    let limited = request.extensions().get::<Identity>().and_then(|identity| identity.limited.as_ref());
    let Some(token) = limited else { return Ok(request) };
    match app.roles.why_refused(request.method(), path) {
        None => Ok(request),
        Some(why) => {
            let scope = &token.scope;
            let words = format!("{why}; this token is limited to {scope}: use one without limits");
            Err(Problem::new(Code::OutsideScope, words))
        }
    }
}

/// Refuses a query for an operation that has no query parameters. The others refuse unknown parameters themselves.
fn check_query(app: &App, path: &str, request: Request) -> Result<Request, Problem> {
    let query = request.uri().query().unwrap_or_default();
    let name = query.split(['=', '&']).next().unwrap_or_default();
    if query.is_empty() || app.roles.may_have_query(request.method(), path) {
        return Ok(request);
    }
    let words = format!("unknown parameter `{name}`: this operation has no query parameters");
    Err(Problem::new(Code::InvalidParameter, words).at(format!("query {name}")))
}

/// Authenticates and authorizes the request. If the id of the session was rotated, also returns the cookie with the new id, even
/// for a refused request: without the cookie, the user would be signed out.
async fn admit(
    app: &App,
    mut request: Request,
    needed: Needed,
) -> (Result<Request, Problem>, Option<HeaderValue>) {
    let client = Client::of(request.extensions());
    let Signed { identity, cookie } = match identify(app, request.headers(), client, needed).await {
        Ok(signed) => signed,
        Err(problem) => {
            let refused = app.limits.check_refused(client).err().unwrap_or(problem);
            return (Err(refused), None);
        }
    };
    if let Needed::Role(role) = needed
        && !identity.may(role)
    {
        let words = format!("this needs the role {role}, which {} does not have", identity.who);
        return (Err(Problem::new(Code::RoleNeeded, words)), cookie);
    }
    request.extensions_mut().insert(identity);
    (Ok(request), cookie)
}

/// Identifies the caller of a route with this requirement.
async fn identify(app: &App, headers: &HeaderMap, client: Client, needed: Needed) -> Result<Signed, Problem> {
    let anonymous = |allowed| Ok(Signed { identity: Identity::anonymous(allowed), cookie: None });
    if needed == Needed::Nothing {
        return anonymous(Allowed::Nothing);
    }
    if !app.tokens.are_asked_for().await? {
        return anonymous(Allowed::Everything);
    }
    match by_token(app, headers, client).await? {
        Some(identity) => Ok(Signed { identity, cookie: None }),
        None => session::of_headers(app, headers, client).await?.ok_or_else(nobody),
    }
}

/// Identifies the caller for error pages, as far as possible. This does not count as use of the session and does not rotate its
/// id.
pub(crate) async fn known(app: &App, headers: &HeaderMap, client: Client) -> Option<Identity> {
    if !app.tokens.are_asked_for().await.ok()? {
        return Some(Identity::anonymous(Allowed::Everything));
    }
    match by_token(app, headers, client).await.ok()? {
        None => session::peek(app, headers, client).await.ok()?,
        bearer => bearer,
    }
}

/// Identifies the caller by a bearer token, if there is one.
async fn by_token(app: &App, headers: &HeaderMap, client: Client) -> Result<Option<Identity>, Problem> {
    let Some(secret) = bearer(headers)? else { return Ok(None) };
    let recalled = app.tokens.recall(&secret);
    if recalled == Recalled::Nothing
        // The store has to be queried. The rate of such queries is limited for each client, except for tokens that exist.
        && let Err(too_many) = app.limits.check_stranger(client)
        && !app.tokens.is_listed(&secret).await?
    {
        return Err(too_many);
    }
    let found = match recalled {
        Recalled::Fresh(token) => Some(token),
        _ => app.tokens.find(&secret).await?,
    };
    let Some(token) = found else {
        return Err(Problem::new(Code::UnknownToken, "unknown token"));
    };
    check(&token)?;
    Ok(Some(Identity::of_token(&token.view)))
}

fn nobody() -> Problem {
    Problem::new(
        Code::NoToken,
        "this needs a token: Authorization: Bearer mp_…; `milepost tokens create` creates one",
    )
}
