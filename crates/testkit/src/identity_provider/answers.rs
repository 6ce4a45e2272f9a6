//! The answers of the provider, which a test can change.

use std::time::Duration;

use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde_json::{Map, Value, json};

use super::keys::{self, Signature};

/// The answers of the provider.
pub struct Answers {
    /// Claims of the ID token; they replace those that the provider makes. `null` removes a claim.
    pub claims: Value,
    /// How the ID token is signed.
    pub signature: Signature,
    /// Members of the header of the ID token.
    pub header: Value,
    /// The keys that the provider publishes.
    pub published: Vec<Signature>,
    /// Changes of the configuration.
    pub configuration: Map<String, Value>,
    /// Faulty answers, each with the call: `configuration`, `keys`, or `token`.
    pub faults: Vec<(&'static str, Fault)>,
}

/// A faulty answer.
#[derive(Clone, Copy, Debug)]
pub enum Fault {
    /// An error with the secrets of the server in its body.
    Status500,
    /// A redirect to another path.
    Redirect,
    /// JSON that does not end.
    Huge,
    /// Text.
    NotJson,
    /// No answer.
    Silence,
}

impl Default for Answers {
    fn default() -> Self {
        Self {
            claims: json!({"email": "ada@example.org", "groups": ["milepost-operators"]}),
            signature: Signature::Rs256,
            header: json!({}),
            published: vec![Signature::Rs256],
            configuration: Map::new(),
            faults: Vec::new(),
        }
    }
}

impl Answers {
    pub(super) fn fault(&self, what: &str) -> Option<Fault> {
        self.faults.iter().find(|(its, _)| *its == what).map(|(_, fault)| *fault)
    }

    pub(super) fn public_keys(&self) -> Vec<Value> {
        self.published.iter().filter_map(|signature| keys::published(*signature)).collect()
    }

    pub(super) fn id_token(&self, issuer: &str, nonce: &str) -> String {
        let now = jiff::Timestamp::now().as_second();
        let mut claims = json!({
            "iss": issuer, "sub": "248289761001", "aud": super::CLIENT_ID, "nonce": nonce,
            "iat": now, "exp": now + 300, "auth_time": now - 3_600, "email_verified": true,
        });
        merge(&mut claims, &self.claims);
        let mut header =
            json!({"alg": keys::name(self.signature), "kid": keys::id(self.signature), "typ": "JWT"});
        merge(&mut header, &self.header);
        keys::signed(self.signature, &header, &claims)
    }
}

fn merge(into: &mut Value, changes: &Value) {
    let into = into.as_object_mut().expect("an object");
    for (name, value) in changes.as_object().expect("an object") {
        match value {
            Value::Null => into.remove(name),
            value => into.insert(name.clone(), value.clone()),
        };
    }
}

impl Fault {
    pub(super) async fn answer(self, issuer: &str) -> Response {
        let json = [(header::CONTENT_TYPE, "application/json")];
        match self {
            Self::Status500 => {
                (StatusCode::INTERNAL_SERVER_ERROR, format!("broken: {}", super::CLIENT_SECRET))
                    .into_response()
            }
            Self::Redirect => {
                (StatusCode::TEMPORARY_REDIRECT, [(header::LOCATION, format!("{issuer}/keys"))])
                    .into_response()
            }
            Self::Huge => (json, format!("{{\"keys\": [], \"more\": \"{}\"}}", "x".repeat(2 * 1024 * 1024)))
                .into_response(),
            Self::NotJson => "<html>A proxy is in the way.</html>".into_response(),
            Self::Silence => {
                tokio::time::sleep(Duration::from_secs(3_600)).await;
                StatusCode::OK.into_response()
            }
        }
    }
}
