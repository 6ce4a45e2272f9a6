-- Events: facts about aggregates, written in the transactions of the changes that they tell of.

-- The head of an aggregate's events.
CREATE TABLE milepost_aggregate (
    aggregate_type TEXT    NOT NULL,
    aggregate_id   TEXT    NOT NULL,
    last_seq       INTEGER NOT NULL,
    PRIMARY KEY (aggregate_type, aggregate_id)
) STRICT, WITHOUT ROWID;

-- The log: grows at its end, and no row of it is ever updated. There is one writer: pos is the order of commits.
-- payload: published as it was written. headers: a JSON object; NULL when there are none.
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
