//! Keys of targets, and so the positions of a bulk job in its targets.

use std::fmt;

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The key of one target: one value per column, as the store writes it (on PostgreSQL the text of each value).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema), schema(as = TargetKey))]
#[serde(transparent)]
pub struct Key(pub Vec<Value>);

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, value) in self.0.iter().enumerate() {
            f.write_str(if at == 0 { "" } else { ", " })?;
            match value {
                Value::String(text) => f.write_str(text)?,
                value => value.fmt(f)?,
            }
        }
        Ok(())
    }
}
