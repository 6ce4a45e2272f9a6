//! A small OpenID Connect provider, with answers that a test can change.
//!
//! Everybody who comes to it is signed in as the person of [`Answers::claims`]. It checks the secret of its client, the redirect URL and
//! PKCE as real providers do. Codes stay valid, so that only the server under test can refuse a second use.

mod answers;
mod keys;

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard};

use axum::extract::{Query, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Json, Redirect, Response};
use axum::routing::{get, post};
use axum::{Form, Router};
use base64::Engine;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use serde_json::json;
use sha2::{Digest, Sha256};
use tokio::net::TcpListener;
use tokio_util::sync::{CancellationToken, DropGuard};

pub use self::answers::{Answers, Fault};
pub use self::keys::Signature;

/// The client that the provider knows.
pub const CLIENT_ID: &str = "milepost";
/// Its secret, with characters that must be encoded in the header.
pub const CLIENT_SECRET: &str = "a secret:of+the/client%";

type Parameters = HashMap<String, String>;

/// A provider that runs until it is dropped.
pub struct IdentityProvider {
    issuer: String,
    shared: Arc<Shared>,
    _stop: DropGuard,
}

struct Shared {
    issuer: String,
    answers: Mutex<Answers>,
    /// The requests for a code, by the code.
    codes: Mutex<HashMap<String, Parameters>>,
    calls: Mutex<Vec<&'static str>>,
}

impl IdentityProvider {
    /// Starts a provider on a free port of this machine.
    pub async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let address = listener.local_addr().expect("an address");
        // A name, since cookies of the same address would be sent to all ports of it.
        let issuer = format!("http://localhost:{}", address.port());
        let shared = Arc::new(Shared {
            issuer: issuer.clone(),
            answers: Mutex::default(),
            codes: Mutex::default(),
            calls: Mutex::default(),
        });
        let routes = Router::new()
            .route("/.well-known/openid-configuration", get(configuration))
            .route("/keys", get(keys))
            .route("/authorize", get(authorize))
            .route("/token", post(token))
            .route("/end", get(async || "You are signed out here."))
            .with_state(Arc::clone(&shared));
        let stop = CancellationToken::new();
        let stopped = stop.clone().cancelled_owned();
        tokio::spawn(async move { axum::serve(listener, routes).with_graceful_shutdown(stopped).await });
        Self { issuer, shared, _stop: stop.drop_guard() }
    }

    /// Returns its issuer.
    pub fn issuer(&self) -> &str {
        &self.issuer
    }

    /// Returns the answers, for changes.
    pub fn answers(&self) -> MutexGuard<'_, Answers> {
        self.shared.answers.lock().expect("not poisoned")
    }

    /// Returns how often this was called: `configuration`, `keys`, or `token`.
    pub fn calls(&self, what: &str) -> usize {
        self.shared.calls.lock().expect("not poisoned").iter().filter(|its| **its == what).count()
    }

    /// Returns an ID token, as the provider would sign it for this nonce.
    pub fn id_token(&self, nonce: &str) -> String {
        self.answers().id_token(&self.issuer, nonce)
    }
}

impl Shared {
    /// Counts a call. Returns the faulty answer, if the test wants one.
    async fn called(&self, what: &'static str) -> Option<Response> {
        self.calls.lock().expect("not poisoned").push(what);
        let fault = self.answers.lock().expect("not poisoned").fault(what)?;
        Some(fault.answer(&self.issuer).await)
    }
}

async fn configuration(State(shared): State<Arc<Shared>>) -> Response {
    if let Some(faulty) = shared.called("configuration").await {
        return faulty;
    }
    let Shared { issuer, answers, .. } = shared.as_ref();
    let mut configuration = json!({
        "issuer": issuer,
        "authorization_endpoint": format!("{issuer}/authorize?tenant=acme"),
        "token_endpoint": format!("{issuer}/token"),
        "jwks_uri": format!("{issuer}/keys"),
        "end_session_endpoint": format!("{issuer}/end"),
        "response_types_supported": ["code"],
        "subject_types_supported": ["public"],
        // The server must not accept all of these.
        "id_token_signing_alg_values_supported": ["RS256", "ES256", "HS256", "none"],
    });
    let changes = answers.lock().expect("not poisoned").configuration.clone();
    configuration.as_object_mut().expect("an object").extend(changes);
    Json(configuration).into_response()
}

async fn keys(State(shared): State<Arc<Shared>>) -> Response {
    if let Some(faulty) = shared.called("keys").await {
        return faulty;
    }
    let keys = shared.answers.lock().expect("not poisoned").public_keys();
    Json(json!({ "keys": keys })).into_response()
}

/// The page to sign in: it does not ask, and sends the browser back with a code.
async fn authorize(State(shared): State<Arc<Shared>>, Query(asked): Query<Parameters>) -> Response {
    let wanted = [
        ("response_type", "code"),
        ("client_id", CLIENT_ID),
        ("code_challenge_method", "S256"),
        // The parameter of the endpoint's own URL.
        ("tenant", "acme"),
    ];
    for (name, value) in wanted {
        if asked.get(name).is_none_or(|its| its != value) {
            return (StatusCode::BAD_REQUEST, format!("{name} is not {value}")).into_response();
        }
    }
    let mut codes = shared.codes.lock().expect("not poisoned");
    let code = format!("code-{}", codes.len());
    let back = form_urlencoded::Serializer::new(String::new())
        .append_pair("code", &code)
        .append_pair("state", &asked["state"])
        .append_pair("iss", &shared.issuer)
        .append_pair("session_state", "which the server does not need")
        .finish();
    let back = format!("{}?{back}", asked["redirect_uri"]);
    codes.insert(code, asked);
    Redirect::to(&back).into_response()
}

/// Exchanges a code for an ID token.
async fn token(
    State(shared): State<Arc<Shared>>,
    headers: HeaderMap,
    Form(given): Form<Parameters>,
) -> Response {
    if let Some(faulty) = shared.called("token").await {
        return faulty;
    }
    let refused = |error: &str| {
        let told = json!({"error": error, "error_description": format!("{error} for {given:?} with {CLIENT_SECRET}")});
        (StatusCode::BAD_REQUEST, Json(told)).into_response()
    };
    if !is_client(&headers, &given) {
        return refused("invalid_client");
    }
    let codes = shared.codes.lock().expect("not poisoned");
    let Some(asked) = given.get("code").and_then(|code| codes.get(code)) else {
        return refused("invalid_grant");
    };
    let verifier = given.get("code_verifier").map(String::as_str).unwrap_or_default();
    let challenge = URL_SAFE_NO_PAD.encode(Sha256::digest(verifier));
    if challenge != asked["code_challenge"] || given.get("redirect_uri") != asked.get("redirect_uri") {
        return refused("invalid_grant");
    }
    let id_token = shared.answers.lock().expect("not poisoned").id_token(&shared.issuer, &asked["nonce"]);
    let answer =
        json!({"access_token": "unused", "token_type": "Bearer", "expires_in": 300, "id_token": id_token});
    ([(header::CACHE_CONTROL, "no-store")], Json(answer)).into_response()
}

/// Returns whether the secret is in the header, each part encoded as a form, or in the body.
fn is_client(headers: &HeaderMap, given: &Parameters) -> bool {
    if given.get("client_secret").is_some_and(|secret| secret == CLIENT_SECRET) {
        return given.get("client_id").is_some_and(|id| id == CLIENT_ID);
    }
    let basic =
        headers.get(header::AUTHORIZATION).and_then(|value| value.to_str().ok()?.strip_prefix("Basic "));
    let Some(decoded) = basic.and_then(|basic| STANDARD.decode(basic).ok()) else { return false };
    let encoded = |text: &str| form_urlencoded::byte_serialize(text.as_bytes()).collect::<String>();
    decoded == format!("{}:{}", encoded(CLIENT_ID), encoded(CLIENT_SECRET)).into_bytes()
}
