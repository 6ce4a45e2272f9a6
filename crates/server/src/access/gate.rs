//! The gate before every route.

use axum::extract::{MatchedPath, Request, State};
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};

use super::credentials::bearer;
use super::{Allowed, Identity, Needed, Recalled, check};
use crate::app::App;
use crate::client::Client;
use crate::problem::Problem;
use crate::session::{self, Signed};

/// Lets requests pass whose sender may do what they ask for; the route finds an [`Identity`] with them.
pub(crate) async fn gate(State(app): State<App>, request: Request, next: Next) -> Response {
    // What meets no route is answered with that, whoever asks.
    let Some(path) = request.extensions().get::<MatchedPath>().cloned() else {
        return next.run(request).await;
    };
    let needed = match needed(&app, request.method(), path.as_str()) {
        Ok(needed) => needed,
        Err(problem) => return problem.into_response(),
    };
    let admitted = match admit(&app, request, needed).await {
        Ok(admitted) => admitted,
        Err(problem) => return problem.into_response(),
    };
    let mut response = next.run(admitted.request).await;
    if let Some(cookie) = admitted.cookie {
        response.headers_mut().append(header::SET_COOKIE, cookie);
    }
    response
}

fn needed(app: &App, method: &Method, path: &str) -> Result<Needed, Problem> {
    app.roles.needed(method, path).ok_or_else(|| {
        if app.roles.knows(path) {
            let words = format!("{path} cannot be asked with {method}; /openapi.json says how");
            Problem::new(StatusCode::METHOD_NOT_ALLOWED, "method_not_allowed", words)
        } else {
            Problem::new(
                StatusCode::FORBIDDEN,
                "no_role_known",
                format!("nobody has said who may use {path}"),
            )
        }
    })
}

/// A request that may go on.
struct Admitted {
    request: Request,
    /// The cookie of a session whose id was changed.
    cookie: Option<HeaderValue>,
}

async fn admit(app: &App, mut request: Request, needed: Needed) -> Result<Admitted, Problem> {
    let Needed::Role(role) = needed else {
        request.extensions_mut().insert(Identity::anonymous(Allowed::Nothing));
        return Ok(Admitted { request, cookie: None });
    };
    if !app.tokens.are_asked_for().await? {
        request.extensions_mut().insert(Identity::anonymous(Allowed::Everything));
        return Ok(Admitted { request, cookie: None });
    }
    let client = Client::of(request.extensions());
    let Signed { identity, cookie } = match by_token(app, request.headers(), client).await? {
        Some(identity) => Signed { identity, cookie: None },
        None => {
            let signed = session::of_headers(app, request.headers(), client).await?.ok_or_else(nobody)?;
            request = session::check_form(request, &signed.identity).await?;
            signed
        }
    };
    if !identity.may(role) {
        let words = format!("this needs the role {role}, which {} has not", identity.who);
        return Err(Problem::new(StatusCode::FORBIDDEN, "role_needed", words));
    }
    request.extensions_mut().insert(identity);
    Ok(Admitted { request, cookie })
}

/// Who asks, as far as that is known: for pages that say what went wrong.
pub(crate) async fn known(app: &App, headers: &HeaderMap, client: Client) -> Option<Identity> {
    if !app.tokens.are_asked_for().await.ok()? {
        return Some(Identity::anonymous(Allowed::Everything));
    }
    match by_token(app, headers, client).await.ok()? {
        None => session::of_headers(app, headers, client).await.ok()?.map(|signed| signed.identity),
        bearer => bearer,
    }
}

/// Who shows a token, if one is shown.
async fn by_token(app: &App, headers: &HeaderMap, client: Client) -> Result<Option<Identity>, Problem> {
    let Some(secret) = bearer(headers)? else { return Ok(None) };
    let recalled = app.tokens.recall(&secret);
    if recalled == Recalled::Nothing {
        // The store is asked: not as often as a stranger likes.
        app.limits.check_stranger(client)?;
    }
    let found = match recalled {
        Recalled::Fresh(token) => Some(token),
        _ => app.tokens.find(&secret).await?,
    };
    let Some(token) = found else {
        return Err(Problem::new(StatusCode::UNAUTHORIZED, "unknown_token", "this store has no such token"));
    };
    check(&token)?;
    Ok(Some(Identity::of_token(&token.view)))
}

fn nobody() -> Problem {
    Problem::new(
        StatusCode::UNAUTHORIZED,
        "no_token",
        "this needs a token: Authorization: Bearer mp_…; `milepost tokens create` makes one",
    )
}
