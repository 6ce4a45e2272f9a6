//! A service that accepts orders over HTTP. An order and the job that confirms it are committed together.

mod error;
mod jobs;
mod orders;

use axum::Router;
use axum::routing::{get, post};
use milepost_postgres::PostgresStore;

pub use error::ServiceError;
pub use jobs::Standing;
pub use orders::{NewOrder, Placed};

/// The service's tables, and an item to sell. A real service would have migrations.
const TABLES: &str = "
    create table if not exists stock (item text primary key, pieces int not null check (pieces >= 0));
    create table if not exists orders (
        id bigint generated always as identity primary key,
        item text not null references stock,
        pieces int not null check (pieces > 0));
    insert into stock (item, pieces) values ('milestone', 10) on conflict do nothing;";

/// Creates missing tables: those of the service, and those of its jobs, which are in the same database.
///
/// # Errors
/// When the database cannot be used.
pub async fn prepare(store: &PostgresStore) -> anyhow::Result<()> {
    store.migrate().await?;
    sqlx::raw_sql(TABLES).execute(store.pool()).await?;
    Ok(())
}

/// Returns the routes of the service.
pub fn service(store: PostgresStore) -> Router {
    Router::new().route("/orders", post(orders::place)).route("/jobs/{id}", get(jobs::show)).with_state(store)
}
