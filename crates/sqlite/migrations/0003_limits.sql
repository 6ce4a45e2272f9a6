-- Limits: rates of kinds, slots and rates of groups. A bucket is kept as the time at which it is full again, in
-- Unix microseconds.

CREATE TABLE milepost_kind_limit (
    kind       TEXT    NOT NULL PRIMARY KEY,
    per_second REAL    NOT NULL,
    burst      INTEGER NOT NULL,
    -- How many tokens must be there before any is given out.
    portion    INTEGER NOT NULL,
    full_at_us INTEGER NOT NULL,
    source     TEXT    NOT NULL
) STRICT, WITHOUT ROWID;

-- name: a group, or a class prefix:*. slots: NULL without a limit to them, where there is a rate.
CREATE TABLE milepost_group_limit (
    name       TEXT NOT NULL PRIMARY KEY,
    slots      INTEGER,
    per_second REAL,
    burst      INTEGER,
    source     TEXT NOT NULL
) STRICT, WITHOUT ROWID;

-- One a group that has a rate and was used lately.
CREATE TABLE milepost_group_bucket (
    group_key  TEXT    NOT NULL PRIMARY KEY,
    full_at_us INTEGER NOT NULL,
    -- When to look at the group again; NULL while it waits for a slot, whose end is seen.
    look_at_us INTEGER
) STRICT, WITHOUT ROWID;

CREATE INDEX milepost_group_bucket_look ON milepost_group_bucket (look_at_us) WHERE look_at_us IS NOT NULL;

CREATE INDEX milepost_group_slot_job ON milepost_group_slot (job_id);
