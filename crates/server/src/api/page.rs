//! Pages of lists: a page says where the next one begins.

use axum::http::StatusCode;
use serde::Serialize;
use utoipa::ToSchema;

use crate::problem::Problem;

/// How many rows a page has when nobody says.
pub(crate) const ROWS_DEFAULT: u32 = 50;
/// How many rows a page has at most.
pub(crate) const ROWS_MAX: u32 = 1_000;

/// Some of the rows that there are.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Page<T: ToSchema> {
    /// The rows.
    pub(crate) items: Vec<T>,
    /// Give it as `cursor` for the rows that follow. Missing: there are none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) next_cursor: Option<String>,
}

impl<T: ToSchema> Page<T> {
    /// The page of the rows that were found when one more than `limit` were looked for.
    pub(crate) fn of(mut found: Vec<T>, limit: u32, cursor: impl Fn(&T) -> String) -> Self {
        let limit = limit as usize;
        let next_cursor = match limit.checked_sub(1).and_then(|last| found.get(last)) {
            Some(last) if found.len() > limit => Some(cursor(last)),
            _ => None,
        };
        found.truncate(limit);
        Self { items: found, next_cursor }
    }
}

/// Refuses a request that speaks of nothing, or of more than it may.
pub(crate) fn check_count(given: usize, max: usize, at: &str) -> Result<(), Problem> {
    if (1..=max).contains(&given) {
        return Ok(());
    }
    let words = format!("a request has from 1 to {max} of {at}, not {given}; split it");
    Err(Problem::new(StatusCode::PAYLOAD_TOO_LARGE, "too_many", words).at(at))
}

/// How many rows are asked for.
pub(crate) fn limit(asked: Option<u32>) -> Result<u32, Problem> {
    match asked.unwrap_or(ROWS_DEFAULT) {
        limit @ 1..=ROWS_MAX => Ok(limit),
        limit => Err(Problem::bad_request(
            "invalid_parameter",
            format!("a page has from 1 to {ROWS_MAX} rows, not {limit}; go on with next_cursor"),
        )
        .at("query limit")),
    }
}
