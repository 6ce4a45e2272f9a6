//! What can go wrong, and what the caller is told of it.

use axum::Json;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use milepost::{InvalidJob, JobId, StoreError};
use serde_json::json;
use thiserror::Error;

/// Why a request was not done.
#[derive(Debug, Error)]
pub enum ServiceError {
    /// Too few pieces are left.
    #[error("too few pieces of {0:?} are left")]
    SoldOut(String),
    /// Nobody knows this job.
    #[error("there is no job {0}")]
    NoSuchJob(JobId),
    /// The database refused the order or does not answer.
    #[error("the database failed")]
    Database(#[from] sqlx::Error),
    /// The job cannot be written.
    #[error("the job cannot be written")]
    Job(#[from] InvalidJob),
    /// The store of jobs does not answer.
    #[error("the store of jobs failed")]
    Store(#[from] StoreError),
}

impl ServiceError {
    fn status(&self) -> StatusCode {
        match self {
            Self::SoldOut(_) => StatusCode::CONFLICT,
            Self::NoSuchJob(_) => StatusCode::NOT_FOUND,
            // What the caller sent does not fit the tables: no such item, no pieces.
            Self::Database(sqlx::Error::Database(error))
                if error.is_foreign_key_violation() || error.is_check_violation() =>
            {
                StatusCode::UNPROCESSABLE_ENTITY
            }
            Self::Store(error) if error.is_transient() => StatusCode::SERVICE_UNAVAILABLE,
            _ => StatusCode::INTERNAL_SERVER_ERROR,
        }
    }
}

impl IntoResponse for ServiceError {
    fn into_response(self) -> Response {
        let status = self.status();
        let told = match status {
            StatusCode::UNPROCESSABLE_ENTITY => "there is no such item, or no pieces were ordered".to_owned(),
            _ => self.to_string(),
        };
        if status.is_server_error() {
            tracing::error!(error = ?self, "a request failed");
        }
        (status, Json(json!({ "error": told }))).into_response()
    }
}
