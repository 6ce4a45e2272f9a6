//! URLs with secrets.

use std::fmt;

use schemars::JsonSchema;
use serde::Deserialize;

/// A URL that may hold a password, and is therefore never shown.
#[derive(Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(transparent)]
pub struct SecretUrl(String);

impl SecretUrl {
    /// Returns the URL, for connections only.
    #[must_use]
    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl From<&str> for SecretUrl {
    fn from(url: &str) -> Self {
        Self(url.to_owned())
    }
}

impl fmt::Debug for SecretUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SecretUrl(…)")
    }
}
