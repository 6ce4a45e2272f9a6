//! Durations in human-readable form.

use std::time::Duration;

use milepost_cli_support::parsers;
use schemars::JsonSchema;
use serde::Deserialize;

/// A duration such as `30s`, `10m` or `1h 30m`.
#[derive(Clone, Copy, Debug, Deserialize, JsonSchema)]
#[serde(try_from = "String")]
#[schemars(extend("format" = "milepost-duration"))]
pub(crate) struct Humane(pub(crate) Duration);

impl TryFrom<String> for Humane {
    type Error = String;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        parsers::duration(&text).map(Self)
    }
}
