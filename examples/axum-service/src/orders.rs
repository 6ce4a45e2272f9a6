//! Orders: the request, and the transaction that writes an order with its job.

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use example_worker::ConfirmOrder;
use milepost::{Job, JobId};
use milepost_postgres::PostgresStore;
use serde::{Deserialize, Serialize};
use sqlx::PgConnection;

use crate::error::ServiceError;

/// A requested order.
#[derive(Debug, Serialize, Deserialize)]
pub struct NewOrder {
    /// The name of the item.
    pub item: String,
    /// The number of pieces.
    pub pieces: i32,
}

/// An accepted order.
#[derive(Debug, Serialize, Deserialize)]
pub struct Placed {
    /// The number of the order.
    pub order: i64,
    /// The job that confirms it.
    pub job: JobId,
}

/// `POST /orders`: writes the order and enqueues its job in one transaction.
pub(crate) async fn place(
    State(store): State<PostgresStore>,
    Json(new): Json<NewOrder>,
) -> Result<(StatusCode, Json<Placed>), ServiceError> {
    let mut tx = store.pool().begin().await?;
    let order: i64 = sqlx::query_scalar("insert into orders (item, pieces) values ($1, $2) returning id")
        .bind(&new.item)
        .bind(new.pieces)
        .fetch_one(&mut *tx)
        .await?;
    let confirm = ConfirmOrder { order }.to_job()?.key(order.to_string());
    let job = milepost_postgres::enqueue(&mut tx, &confirm).await?.job;
    // On an error, the transaction is dropped and neither the order nor the job is stored.
    take_from_stock(&mut tx, &new).await?;
    tx.commit().await?;
    Ok((StatusCode::CREATED, Json(Placed { order, job })))
}

async fn take_from_stock(tx: &mut PgConnection, new: &NewOrder) -> Result<(), ServiceError> {
    let taken = sqlx::query("update stock set pieces = pieces - $2 where item = $1 and pieces >= $2")
        .bind(&new.item)
        .bind(new.pieces)
        .execute(tx)
        .await?;
    if taken.rows_affected() == 1 { Ok(()) } else { Err(ServiceError::SoldOut(new.item.clone())) }
}
