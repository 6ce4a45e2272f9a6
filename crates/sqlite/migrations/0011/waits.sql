-- Waits of tasks, and the signals that end them. See docs/adr/0039-waits.md.

-- Tasks that wait, or that have waited, in their last generation. signal: NULL if the task waits for a time only. until_ms: NULL without a limit.
-- on_timeout: the state of the task after that time. check_at_ms: when the wait is checked next: now for a new one and after a signal, then until_ms; NULL
-- if nothing can end it but an operator or a signal. output: the payload of the signal that ended it.
CREATE TABLE milepost_batch_wait (
    batch_id    BLOB    NOT NULL,
    task        INTEGER NOT NULL,
    signal      TEXT,
    since_ms    INTEGER NOT NULL,
    until_ms    INTEGER,
    on_timeout  TEXT    NOT NULL CHECK (on_timeout IN ('failed', 'skipped', 'succeeded')),
    check_at_ms INTEGER,
    output      TEXT,
    PRIMARY KEY (batch_id, task)
) STRICT, WITHOUT ROWID;

CREATE INDEX milepost_batch_wait_check ON milepost_batch_wait (check_at_ms) WHERE check_at_ms IS NOT NULL;

-- Signals. state: kept (a wait can use it), used (it ended a wait), or unused (a rerun discarded it).
CREATE TABLE milepost_batch_signal (
    pos        INTEGER PRIMARY KEY AUTOINCREMENT,
    batch_id   BLOB    NOT NULL,
    id         TEXT    NOT NULL,
    name       TEXT    NOT NULL,
    state      TEXT    NOT NULL CHECK (state IN ('kept', 'used', 'unused')),
    sent_at_ms INTEGER NOT NULL,
    payload    TEXT    NOT NULL,
    UNIQUE (batch_id, id)
) STRICT;

CREATE INDEX milepost_batch_signal_kept ON milepost_batch_signal (batch_id, name, pos) WHERE state = 'kept';

-- The tasks of a version that wait for a signal, by its name.
CREATE INDEX milepost_dag_task_signal ON milepost_dag_task (version_id, spec ->> '$.wait.signal') WHERE spec ->> '$.wait.signal' IS NOT NULL;
