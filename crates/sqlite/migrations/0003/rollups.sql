-- Numbers of attempts by period, queue and kind, counted from the history by maintenance, for charts.
--
-- step_s: the length of the period; periods get longer as they get older. starts_at_s: its start. queue, kind: empty if they are not known. bucket: n for
-- durations from 2^n ms, up to twice that: of the wait before a claim, and of the run before other verbs; -1 if not known.
CREATE TABLE milepost_rollup (
    step_s      INTEGER NOT NULL,
    starts_at_s INTEGER NOT NULL,
    queue       TEXT    NOT NULL,
    kind        TEXT    NOT NULL,
    verb        TEXT    NOT NULL,
    bucket      INTEGER NOT NULL,
    times       INTEGER NOT NULL,
    PRIMARY KEY (step_s, starts_at_s, queue, kind, verb, bucket)
) STRICT, WITHOUT ROWID;

-- Up to where the history is counted; one row. pos: the last position. at_ms: when.
CREATE TABLE milepost_rollup_position (
    one   INTEGER PRIMARY KEY DEFAULT 1 CHECK (one = 1),
    pos   INTEGER NOT NULL,
    at_ms INTEGER NOT NULL
) STRICT;
