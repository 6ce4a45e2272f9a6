//! Doctor checks: findings, repairs, and data without findings.

mod batch_damage;
mod batches;
mod bulks;
mod damage;
mod event_damage;
mod portions;
mod repairs;
mod surroundings;

use milepost_core::doctor::{Check, Finding};
use milepost_testkit::home::{Home, PostgresHome, SqliteHome};

fn checks(findings: &[Finding]) -> Vec<Check> {
    findings.iter().map(|finding| finding.check).collect()
}

async fn homes() -> [Box<dyn Home>; 2] {
    [Box::new(PostgresHome::fresh().await), Box::new(SqliteHome::fresh().await)]
}
