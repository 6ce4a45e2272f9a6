-- Limits: rates of kinds, and slots and rates of groups. A token bucket is stored as the time at which it is full again, in Unix
-- microseconds.

CREATE TABLE milepost_kind_limit (
    kind       TEXT    NOT NULL PRIMARY KEY,
    per_second REAL    NOT NULL,
    burst      INTEGER NOT NULL,
    -- The number of tokens that must be available before any is issued.
    portion    INTEGER NOT NULL,
    full_at_us INTEGER NOT NULL,
    source     TEXT    NOT NULL
) STRICT, WITHOUT ROWID;

-- name: a group, or a class (prefix:*). slots: NULL if only the rate is limited.
CREATE TABLE milepost_group_limit (
    name       TEXT NOT NULL PRIMARY KEY,
    slots      INTEGER,
    per_second REAL,
    burst      INTEGER,
    source     TEXT NOT NULL
) STRICT, WITHOUT ROWID;

-- One row for each group that has a rate and was used recently.
CREATE TABLE milepost_group_bucket (
    group_key  TEXT    NOT NULL PRIMARY KEY,
    full_at_us INTEGER NOT NULL,
    -- The time at which to check the group again; NULL while the group waits for a slot, because the end of a job triggers that check.
    look_at_us INTEGER
) STRICT, WITHOUT ROWID;

CREATE INDEX milepost_group_bucket_look ON milepost_group_bucket (look_at_us) WHERE look_at_us IS NOT NULL;
