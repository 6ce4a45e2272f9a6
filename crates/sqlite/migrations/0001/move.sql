-- Moves: the target to which this store was moved. While the row exists, triggers reject every change to the other tables. The triggers are
-- created and dropped together with the row, so a store that is not moved has no overhead.
CREATE TABLE milepost_departure (
    one             INTEGER NOT NULL PRIMARY KEY CHECK (one = 1),
    move_id         BLOB    NOT NULL,
    target          TEXT    NOT NULL,
    began_at_ms     INTEGER NOT NULL,
    completed_at_ms INTEGER
) STRICT, WITHOUT ROWID;
