-- Moves: where the jobs of this store went. While the row stands, triggers refuse every change of the other tables;
-- they are made with it and go with it, so that a store that stays pays nothing.
CREATE TABLE milepost_departure (
    one             INTEGER NOT NULL PRIMARY KEY CHECK (one = 1),
    move_id         BLOB    NOT NULL,
    target          TEXT    NOT NULL,
    began_at_ms     INTEGER NOT NULL,
    completed_at_ms INTEGER
) STRICT, WITHOUT ROWID;
