//! Pages of lists, with the cursor of the next page.

use axum::http::StatusCode;
use serde::Serialize;
use utoipa::ToSchema;

use crate::problem::Problem;

/// Default number of rows in a page.
pub(crate) const ROWS_DEFAULT: u32 = 50;
/// Maximum number of rows in a page.
pub(crate) const ROWS_MAX: u32 = 1_000;

/// A page of rows.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Page<T: ToSchema> {
    /// The rows.
    pub(crate) items: Vec<T>,
    /// The `cursor` of the next page. Missing on the last page.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) next_cursor: Option<String>,
}

impl<T: ToSchema> Page<T> {
    /// Builds a page from rows that were queried with `limit` + 1.
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

/// Refuses a request with no items, or with more than `max`.
pub(crate) fn check_count(given: usize, max: usize, at: &str) -> Result<(), Problem> {
    if (1..=max).contains(&given) {
        return Ok(());
    }
    let words = format!("a request must have 1 to {max} {at}, not {given}; split it");
    Err(Problem::new(StatusCode::PAYLOAD_TOO_LARGE, "too_many", words).at(at))
}

/// Returns the requested number of rows, or the default.
pub(crate) fn limit(asked: Option<u32>) -> Result<u32, Problem> {
    match asked.unwrap_or(ROWS_DEFAULT) {
        limit @ 1..=ROWS_MAX => Ok(limit),
        limit => Err(Problem::bad_request(
            "invalid_parameter",
            format!(
                "a page must have 1 to {ROWS_MAX} rows, not {limit}; read the next page with next_cursor"
            ),
        )
        .at("query limit")),
    }
}
