//! The migrations of the schema, and the functions that follow them.

use milepost_core::schema::{Migration, Migrations};

/// Every migration. A released one is never edited.
pub(crate) const MIGRATIONS: Migrations = Migrations(&[
    Migration { name: "baseline", summary: "creates the tables", compatible_from: 1, sql: BASELINE },
    Migration {
        name: "servers",
        summary: "tells servers apart in the table of timelines, which has a few rows",
        compatible_from: 2,
        sql: include_str!("../migrations/0002/servers.sql"),
    },
    Migration {
        name: "replayed",
        summary: "marks parked events that are published again, of which there are few",
        compatible_from: 2,
        sql: include_str!("../migrations/0003/replayed.sql"),
    },
    Migration {
        name: "rollups",
        summary: "creates the tables of numbers for charts",
        compatible_from: 2,
        sql: include_str!("../migrations/0004/rollups.sql"),
    },
    Migration {
        name: "used_sequences",
        summary: "adds columns to positions of consumers, and builds an index of dead letters of inboxes again",
        compatible_from: 2,
        sql: include_str!("../migrations/0005/used_sequences.sql"),
    },
    Migration {
        name: "reserved_starts",
        summary: "adds columns to jobs and to the buckets of groups, and an index of the jobs whose start is reserved",
        compatible_from: 1,
        sql: include_str!("../migrations/0006/reserved_starts.sql"),
    },
    Migration {
        name: "statements",
        summary: "adds a column to the definitions of bulk jobs, of which there are few",
        compatible_from: 1,
        sql: include_str!("../migrations/0007/statements.sql"),
    },
    Migration {
        name: "logs",
        summary: "changes the few rows of the timelines of the server",
        compatible_from: 2,
        sql: include_str!("../migrations/0008/logs.sql"),
    },
    Migration {
        name: "slots",
        summary: "adds a column to workers, of which there are few",
        compatible_from: 2,
        sql: include_str!("../migrations/0009/slots.sql"),
    },
    Migration {
        name: "restores",
        summary: "changes the few rows of the timelines of the server, and checks new rates of limits",
        compatible_from: 2,
        sql: include_str!("../migrations/0010/restores.sql"),
    },
    Migration {
        name: "retention_settings",
        summary: "creates a table of retention periods that operators set",
        compatible_from: 2,
        sql: include_str!("../migrations/0011/retention_settings.sql"),
    },
    Migration {
        name: "counting",
        summary: "replaces functions only",
        compatible_from: 2,
        sql: include_str!("../migrations/0012/counting.sql"),
    },
    Migration {
        name: "payload_types",
        summary: "replaces functions only",
        compatible_from: 2,
        sql: include_str!("../migrations/0013/payload_types.sql"),
    },
    Migration {
        name: "alerts",
        summary: "creates tables of alerts, and of the messages about them",
        compatible_from: 2,
        sql: include_str!("../migrations/0014/alerts.sql"),
    },
    Migration {
        name: "token_scopes",
        summary: "adds a column to tokens, of which there are few",
        compatible_from: 2,
        sql: include_str!("../migrations/0015/token_scopes.sql"),
    },
    Migration {
        name: "waits",
        summary: "creates tables of waits and signals of batches, and an index of the tasks of DAGs that wait, of which there are none",
        compatible_from: 2,
        sql: include_str!("../migrations/0016/waits.sql"),
    },
    Migration {
        name: "oidc",
        summary: "adds columns to console sessions, of which there are few, and a table of sign-ins with a provider",
        compatible_from: 2,
        sql: include_str!("../migrations/0017/oidc.sql"),
    },
    Migration {
        name: "duplicates",
        summary: "adds a column to jobs, without rewriting them, and the verb of edits",
        compatible_from: 2,
        sql: include_str!("../migrations/0018/duplicates.sql"),
    },
    Migration {
        name: "event_work",
        summary: "creates a table of events that have started work",
        compatible_from: 2,
        sql: include_str!("../migrations/0019/event_work.sql"),
    },
]);

/// The tables of the first release, one file for each subject.
const BASELINE: &str = concat!(
    include_str!("../migrations/0001/jobs.sql"),
    include_str!("../migrations/0001/schedules.sql"),
    include_str!("../migrations/0001/limits.sql"),
    include_str!("../migrations/0001/retention.sql"),
    include_str!("../migrations/0001/audit.sql"),
    include_str!("../migrations/0001/move.sql"),
    include_str!("../migrations/0001/bulk.sql"),
    include_str!("../migrations/0001/batches.sql"),
    include_str!("../migrations/0001/events.sql"),
    include_str!("../migrations/0001/subscriptions.sql"),
    include_str!("../migrations/0001/inbox.sql"),
    include_str!("../migrations/0001/changes.sql"),
    include_str!("../migrations/0001/tokens.sql"),
    include_str!("../migrations/0001/epoch.sql"),
    include_str!("../migrations/0001/text_limits.sql")
);

/// The functions of schema `milepost`, all replaced by each migration.
pub(crate) const API: &str = concat!(
    include_str!("../sql/documents.sql"),
    include_str!("../sql/epoch.sql"),
    include_str!("../sql/rates.sql"),
    include_str!("../sql/groups.sql"),
    include_str!("../sql/task_rules.sql"),
    include_str!("../sql/settle.sql"),
    include_str!("../sql/spread.sql"),
    include_str!("../sql/verbs.sql"),
    include_str!("../sql/api.sql"),
    include_str!("../sql/edits.sql"),
    include_str!("../sql/duplicates.sql"),
    include_str!("../sql/bulk.sql"),
    include_str!("../sql/batches.sql"),
    include_str!("../sql/waits.sql"),
    include_str!("../sql/batch_versions.sql"),
    include_str!("../sql/batch_operations.sql"),
    include_str!("../sql/batch_reruns.sql"),
    include_str!("../sql/events.sql"),
    include_str!("../sql/payload_types.sql"),
    include_str!("../sql/changes.sql"),
    include_str!("../sql/relay.sql"),
    include_str!("../sql/subscriptions.sql"),
    include_str!("../sql/inbox.sql"),
    include_str!("../sql/audit.sql"),
    include_str!("../sql/repair.sql"),
    include_str!("../sql/move.sql")
);

#[cfg(test)]
mod tests {
    use milepost_core::schema::checksum;

    use super::*;

    #[test]
    fn no_released_migration_was_edited() {
        let checksums: Vec<String> = MIGRATIONS.0.iter().map(|its| checksum(its.sql)).collect();
        assert_eq!(
            checksums,
            [
                "76012f6ed6cf869d",
                "a0bb6f118691954a",
                "a131c85005cb2405",
                "2aac421710526ddb",
                "f0dd9c05c7b6f540",
                "202e96f6cf385ede",
                "b256a77f90cefd04",
                "bbc1bf0b0ce77acd",
                "bc6b294880917e3a",
                "32cfc2a4dbc40536",
                "968e7d11fdeecd49",
                "a8ca21221b895ff2",
                "013a1db73088b51f",
                "1ffe1d189d33dc6e",
                "699b3a42dc456059",
                "0d7bf8f836f83218",
                "068111816c156e66",
                "dafbef3be581fda7",
                "669948466c71abd2",
            ],
            "add a migration instead of editing a released one"
        );
    }
}
