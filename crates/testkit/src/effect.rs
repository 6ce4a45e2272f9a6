//! External effects of jobs: rows of a table, which tests count.

use milepost::{JobId, Run};
use sqlx::{Executor, PgConnection, PgPool};
use uuid::Uuid;

/// Creates the table. It has no constraints, because tests must detect duplicate effects, not prevent them.
pub async fn prepare(pool: &PgPool) {
    let table = "create table test_effect (job_id uuid not null, token int not null, place text not null)";
    pool.execute(table).await.expect("cannot create the table of effects");
}

/// Records an effect, as handlers do. Without a prepared statement, for poolers.
pub async fn record(connection: &mut PgConnection, run: Run, place: &str) -> Result<(), sqlx::Error> {
    sqlx::query("insert into test_effect (job_id, token, place) values ($1, $2, $3)")
        .bind(run.job.0)
        .bind(run.token.0)
        .bind(place)
        .persistent(false)
        .execute(connection)
        .await
        .map(drop)
}

/// Returns the tokens of the runs in which a job had its effect, in order.
pub async fn tokens(pool: &PgPool, job: JobId) -> Vec<i32> {
    sqlx::query_scalar("select token from test_effect where job_id = $1 order by token")
        .bind(job.0)
        .fetch_all(pool)
        .await
        .expect("answered")
}

/// Returns the number of all effects.
pub async fn count(pool: &PgPool) -> i64 {
    sqlx::query_scalar("select count(*) from test_effect").fetch_one(pool).await.expect("answered")
}

/// Asserts that every one of these jobs had its effect exactly once.
pub async fn assert_once_each(pool: &PgPool, jobs: &[JobId]) {
    let ids: Vec<Uuid> = jobs.iter().map(|job| job.0).collect();
    let wrong: Vec<(Uuid, i64)> = sqlx::query_as(
        "select j.id, count(e.job_id) from unnest($1::uuid[]) j(id) \
         left join test_effect e on e.job_id = j.id group by j.id having count(e.job_id) <> 1",
    )
    .bind(ids)
    .fetch_all(pool)
    .await
    .expect("answered");
    assert!(wrong.is_empty(), "jobs without exactly one effect: {wrong:?}");
}
