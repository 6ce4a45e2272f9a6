//! Errors of the service, and their HTTP responses.

use axum::Json;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use milepost::{InvalidJob, JobId, StoreError};
use serde_json::json;
use thiserror::Error;

/// The reason why a request failed.
#[derive(Debug, Error)]
pub enum ServiceError {
    /// Fewer pieces are left than were ordered.
    #[error("too few pieces of {0:?} are left")]
    SoldOut(String),
    /// There is no such job.
    #[error("there is no job {0}")]
    NoSuchJob(JobId),
    /// The database rejected the order or does not respond.
    #[error("the database failed")]
    Database(#[from] sqlx::Error),
    /// The job is invalid.
    #[error("the job cannot be enqueued")]
    Job(#[from] InvalidJob),
    /// The store of jobs does not respond.
    #[error("the store of jobs failed")]
    Store(#[from] StoreError),
}

impl ServiceError {
    fn status(&self) -> StatusCode {
        match self {
            Self::SoldOut(_) => StatusCode::CONFLICT,
            Self::NoSuchJob(_) => StatusCode::NOT_FOUND,
            // The request violates a constraint of the tables: there is no such item, or no pieces were ordered.
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
