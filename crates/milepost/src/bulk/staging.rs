//! Targets that the caller adds row by row.

use milepost_core::bulk::definition::Definition;
use milepost_core::bulk::error::InvalidBulk;
use milepost_core::bulk::row_pages::RowPages;
use milepost_core::bulk::staged::{BadRow, Columns};
use milepost_core::job::{Enqueued, NewJob};
use milepost_core::port::{BulkStaging, Store, StoreResult};
use serde::Serialize;

/// The targets of one run, added row by row in bounded memory. The run starts with all of them or not at all.
///
/// ```no_run
/// # use milepost::bulk::{ColumnType, Columns, Definition, InvalidBulk, Staging};
/// # use milepost::{NewJob, StoreError};
/// # async fn example(store: std::sync::Arc<dyn milepost::Store>, members: Vec<(i64, String)>) -> Result<(), StoreError> {
/// # let columns = Columns::new([("member_id", ColumnType::Integer), ("text", ColumnType::Text)]).unwrap();
/// let letter = Definition { columns: Some(columns), ..Definition::new("letter") };
/// let mut staging = Staging::begin(store.as_ref(), &letter, "members of May").await?;
/// for (member_id, text) in members {
///     staging.add(&serde_json::json!({ "member_id": member_id, "text": text })).await?;
/// }
/// let run = staging.start(NewJob::new("letter", &serde_json::json!({})).unwrap()).await?;
/// # Ok(())
/// # }
/// ```
pub struct Staging {
    staging: Box<dyn BulkStaging>,
    definition: Definition,
    columns: Columns,
    pages: RowPages,
    rows: u64,
}

impl Staging {
    /// Begins a staging for a definition over a file. `name`: the origin of the rows, for operators.
    ///
    /// # Errors
    /// [`InvalidBulk::NotOverFile`] if the definition declares no columns.
    pub async fn begin(store: &dyn Store, definition: &Definition, name: &str) -> StoreResult<Self> {
        let Some(columns) = definition.columns.clone() else {
            return Err(InvalidBulk::NotOverFile { name: definition.name.clone() }.into());
        };
        let staging = store.stage_bulk(name).await?;
        Ok(Self { staging, definition: definition.clone(), columns, pages: RowPages::default(), rows: 0 })
    }

    /// Adds a row, whose JSON is an object with all columns. `null` means no value; other members are ignored.
    ///
    /// # Errors
    /// [`InvalidBulk::Row`] if a value is missing or does not have its column's type; nothing was added then.
    pub async fn add(&mut self, row: &impl Serialize) -> StoreResult<()> {
        let object = serde_json::to_string(row).map_err(|e| BadRow { column: None, why: e.to_string() });
        let row = object.and_then(|object| self.columns.row_of_json(&object));
        let number = self.rows + 1;
        let row = row.map_err(|bad| InvalidBulk::Row { number, bad })?;
        self.add_made(row).await
    }

    /// Adds a row that was built with its [`Columns`].
    ///
    /// # Errors
    /// If the store fails.
    pub async fn add_made(&mut self, row: String) -> StoreResult<()> {
        self.rows += 1;
        match self.pages.add(row) {
            Some(page) => self.staging.add(page).await,
            None => Ok(()),
        }
    }

    /// Returns how many rows were added.
    #[must_use]
    pub const fn rows(&self) -> u64 {
        self.rows
    }

    /// Starts the run over all rows, with the definition's options. If the job's key exists, the rows are discarded and the existing run is
    /// returned.
    ///
    /// # Errors
    /// If the job cannot be accepted or the store fails; nothing was started then.
    pub async fn start(self, job: NewJob) -> StoreResult<Enqueued> {
        let job = self.definition.direct(job);
        self.start_directed(&job).await
    }

    /// As [`start`](Self::start), with a job that already has the definition's options and may have been changed since.
    ///
    /// # Errors
    /// As [`start`](Self::start).
    pub async fn start_directed(mut self, job: &NewJob) -> StoreResult<Enqueued> {
        self.staging.add(self.pages.rest()).await?;
        self.staging.start(job).await
    }

    /// Deletes the added rows. Without this call retention deletes them an hour later.
    ///
    /// # Errors
    /// If the store fails.
    pub async fn give_up(self) -> StoreResult<()> {
        self.staging.give_up().await
    }
}
