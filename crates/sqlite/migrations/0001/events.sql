-- Events: facts about aggregates, written in the transactions of the changes that they describe.

-- The last sequence number of each aggregate.
CREATE TABLE milepost_aggregate (
    aggregate_type TEXT    NOT NULL,
    aggregate_id   TEXT    NOT NULL,
    last_seq       INTEGER NOT NULL,
    PRIMARY KEY (aggregate_type, aggregate_id)
) STRICT, WITHOUT ROWID;

-- The event log. It is append-only, and no row is ever updated. There is one writer, so pos is the commit order.
-- payload: published exactly as written. headers: a JSON object, or NULL.
CREATE TABLE milepost_event (
    pos            INTEGER PRIMARY KEY AUTOINCREMENT,
    event_id       BLOB    NOT NULL UNIQUE,
    aggregate_type TEXT    NOT NULL,
    aggregate_id   TEXT    NOT NULL,
    aggregate_seq  INTEGER NOT NULL CHECK (aggregate_seq > 0),
    emitted_at_ms  INTEGER NOT NULL,
    event_type     TEXT    NOT NULL,
    headers        TEXT,
    payload        TEXT    NOT NULL,
    UNIQUE (aggregate_type, aggregate_id, aggregate_seq)
) STRICT;
