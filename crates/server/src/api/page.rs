//! Pages of lists, with the cursor of the next page.

use std::fmt::Display;
use std::io;

use axum::Json;
use axum::http::HeaderName;
use axum::http::header::LINK;
use axum::response::{IntoResponse, Response};
use milepost_core::port::StoreResult;
use serde::Serialize;
use utoipa::ToSchema;

use crate::app::App;
use crate::large_reads::LargePermit;
use crate::problem::{Code, Problem};

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

/// The size of rows as JSON at which a page of large rows ends, in bytes.
const PAGE_BYTES: usize = 4 * 1024 * 1024;
/// The number of large rows that are read first, and the maximum number that is read in one step: each can have a megabyte.
const STEP_ROWS: usize = 4;
const STEP_ROWS_MAX: usize = 32;

/// Returns a page of rows that can be large. It ends before `limit` when they have [`PAGE_BYTES`]. `read` returns up to so many rows that follow a
/// position.
pub(crate) async fn of_large_rows<T: Serialize + ToSchema, P: Display + Clone, F>(
    app: &App,
    start: Option<P>,
    limit: u32,
    position: impl Fn(&T) -> P,
    read: impl Fn(Option<P>, u32) -> F,
) -> Result<Response, Problem>
where
    F: Future<Output = StoreResult<Vec<T>>>,
{
    let permit = app.large.permit().await;
    let (items, next) = large_rows(&permit, start, limit, position, read).await?;
    Ok(Json(Page { items, next_cursor: next.map(|next| next.to_string()) }).into_response())
}

/// Reads large rows in steps. Returns them, and the position of the last one if more may follow.
pub(crate) async fn large_rows<T: Serialize, P: Clone, F>(
    _: &LargePermit<'_>,
    start: Option<P>,
    limit: u32,
    position: impl Fn(&T) -> P,
    read: impl Fn(Option<P>, u32) -> F,
) -> Result<(Vec<T>, Option<P>), Problem>
where
    F: Future<Output = StoreResult<Vec<T>>>,
{
    let limit = limit as usize;
    let (mut items, mut bytes, mut step) = (Vec::new(), 0, STEP_ROWS);
    loop {
        // One more than the page has, to know whether there is a next one.
        let wanted = (limit + 1 - items.len()).min(step);
        let after = items.last().map(&position).or_else(|| start.clone());
        let found = read(after, u32::try_from(wanted).unwrap_or(u32::MAX)).await?;
        let is_last = found.len() < wanted;
        bytes += found.iter().map(json_bytes).sum::<usize>();
        items.extend(found);
        if is_last || items.len() > limit || bytes >= PAGE_BYTES {
            let is_complete = is_last && items.len() <= limit;
            items.truncate(limit);
            let next = items.last().map(&position).filter(|_| !is_complete);
            return Ok((items, next));
        }
        // As many as fit, if they are as large as those before.
        step = (items.len() * (PAGE_BYTES - bytes) / bytes.max(1)).clamp(1, STEP_ROWS_MAX.min(4 * step));
    }
}

/// Returns the size of a row as JSON.
fn json_bytes(row: &impl Serialize) -> usize {
    /// Counts what is written.
    struct Counter(usize);

    impl io::Write for Counter {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0 += bytes.len();
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    let mut counter = Counter(0);
    // A row that cannot be written fails when the response is.
    let _ = serde_json::to_writer(&mut counter, row);
    counter.0
}

/// Returns the header with the URL of the page after this position, as RFC 8288 defines it.
pub(crate) fn next_page(
    path: &str,
    next: Option<impl Display>,
    limit: Option<u32>,
) -> Option<[(HeaderName, String); 1]> {
    let next = next?;
    let limit = limit.map_or_else(String::new, |limit| format!("&limit={limit}"));
    Some([(LINK, format!("<{path}?after={next}{limit}>; rel=\"next\""))])
}

/// Refuses a request with no items, or with more than `max`.
pub(crate) fn check_count(given: usize, max: usize, at: &str) -> Result<(), Problem> {
    if (1..=max).contains(&given) {
        return Ok(());
    }
    let words = format!("a request must have 1 to {max} {at}, not {given}; split it");
    Err(Problem::new(Code::TooMany, words).at(at))
}

/// Returns the requested number of rows, or the default.
pub(crate) fn limit(asked: Option<u32>) -> Result<u32, Problem> {
    match asked.unwrap_or(ROWS_DEFAULT) {
        limit @ 1..=ROWS_MAX => Ok(limit),
        limit => Err(Problem::new(
            Code::InvalidParameter,
            format!(
                "a page must have 1 to {ROWS_MAX} rows, not {limit}; read the next page with next_cursor"
            ),
        )
        .at("query limit")),
    }
}
