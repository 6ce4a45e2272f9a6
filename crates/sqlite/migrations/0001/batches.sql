-- Batches: DAGs, their versions, batches, and the tasks of batches as narrow rows with counters.

-- A version of a DAG; immutable. version: the SHA-256 of its canonical form, as 64 hexadecimal digits.
CREATE TABLE milepost_dag_version (
    id            INTEGER PRIMARY KEY AUTOINCREMENT,
    name          TEXT    NOT NULL,
    number        INTEGER NOT NULL,
    version       TEXT    NOT NULL,
    tasks         INTEGER NOT NULL,
    edges         INTEGER NOT NULL,
    depth         INTEGER NOT NULL,
    created_at_ms INTEGER NOT NULL,
    -- Long values come last, because reading a column also reads the columns before it.
    input_schema  TEXT,
    canonical     TEXT    NOT NULL,
    UNIQUE (name, version),
    UNIQUE (name, number)
) STRICT;

-- The latest version of each DAG: the id of the version that a batch uses if it names none.
CREATE TABLE milepost_dag (
    name          TEXT    NOT NULL PRIMARY KEY,
    latest        INTEGER NOT NULL,
    updated_at_ms INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- The tasks of a version. task: the position of the task's key among all keys in sorted order. Lists of tasks are JSON arrays.
-- plain: the payload is ready, so the task can run as soon as its counters allow. spec: the rest of the definition.
-- reads: the predecessors whose results the task's expressions read.
CREATE TABLE milepost_dag_task (
    version_id   INTEGER NOT NULL,
    task         INTEGER NOT NULL,
    rule         TEXT    NOT NULL,
    plain        INTEGER NOT NULL,
    pre_cnt      INTEGER NOT NULL,
    key          TEXT    NOT NULL,
    kind         TEXT,
    queue        TEXT    NOT NULL,
    priority     INTEGER NOT NULL,
    group_key    TEXT,
    max_attempts INTEGER NOT NULL,
    timeout_ms   INTEGER,
    reads        TEXT    NOT NULL,
    spec         TEXT    NOT NULL,
    successors   TEXT    NOT NULL,
    predecessors TEXT    NOT NULL,
    PRIMARY KEY (version_id, task)
) STRICT, WITHOUT ROWID;

CREATE UNIQUE INDEX milepost_dag_task_key ON milepost_dag_task (version_id, key);

-- A run of a version, with the number of its tasks in each state.
-- stop: set by an operator; no task starts while it is set. items_of: the tasks of this batch are the items of a list (its input) over which this task
-- of the parent's version iterates. nominal_zone: the time zone of the date of nominal_at_ms.
CREATE TABLE milepost_batch (
    id            BLOB    NOT NULL PRIMARY KEY,
    dag           TEXT    NOT NULL,
    version_id    INTEGER NOT NULL,
    key           TEXT,
    state         TEXT    NOT NULL,
    stop          TEXT,
    generation    INTEGER NOT NULL DEFAULT 1,
    waiting       INTEGER NOT NULL CHECK (waiting >= 0),
    due           INTEGER NOT NULL CHECK (due >= 0),
    active        INTEGER NOT NULL CHECK (active >= 0),
    failed        INTEGER NOT NULL CHECK (failed >= 0),
    aborted       INTEGER NOT NULL CHECK (aborted >= 0),
    succeeded     INTEGER NOT NULL CHECK (succeeded >= 0),
    skipped       INTEGER NOT NULL CHECK (skipped >= 0),
    canceled      INTEGER NOT NULL CHECK (canceled >= 0),
    parent_id     BLOB,
    parent_task   INTEGER,
    items_of      INTEGER,
    depth         INTEGER NOT NULL DEFAULT 1,
    nominal_at_ms INTEGER,
    nominal_zone  TEXT    CHECK ((nominal_zone IS NULL) = (nominal_at_ms IS NULL)),
    traceparent   TEXT,
    created_at_ms INTEGER NOT NULL,
    updated_at_ms INTEGER NOT NULL,
    ended_at_ms   INTEGER
) STRICT, WITHOUT ROWID;

CREATE UNIQUE INDEX milepost_batch_key ON milepost_batch (key, dag) WHERE key IS NOT NULL;
CREATE INDEX milepost_batch_ended ON milepost_batch (ended_at_ms) WHERE ended_at_ms IS NOT NULL AND parent_id IS NULL;
CREATE INDEX milepost_batch_due ON milepost_batch (id) WHERE due > 0 AND stop IS NULL;
CREATE INDEX milepost_batch_parent ON milepost_batch (parent_id) WHERE parent_id IS NOT NULL;

-- The input of a batch. It is separate from the counters, because an update rewrites the whole row.
CREATE TABLE milepost_batch_input (
    batch_id BLOB NOT NULL PRIMARY KEY,
    input    TEXT NOT NULL
) STRICT, WITHOUT ROWID;

-- A task of a batch. pre_cnt: the number of predecessors that have not ended; the four counters after it: ended predecessors by state.
-- job_id: its job, in the generation in which the task was last decided; child_id: the inner batch of the task.
CREATE TABLE milepost_batch_task (
    batch_id   BLOB    NOT NULL,
    task       INTEGER NOT NULL,
    generation INTEGER NOT NULL DEFAULT 1,
    pre_cnt    INTEGER NOT NULL CHECK (pre_cnt >= 0),
    succeeded  INTEGER NOT NULL DEFAULT 0 CHECK (succeeded >= 0),
    failed     INTEGER NOT NULL DEFAULT 0 CHECK (failed >= 0),
    skipped    INTEGER NOT NULL DEFAULT 0 CHECK (skipped >= 0),
    canceled   INTEGER NOT NULL DEFAULT 0 CHECK (canceled >= 0),
    state      TEXT    NOT NULL,
    job_id     BLOB,
    child_id   BLOB,
    PRIMARY KEY (batch_id, task)
) STRICT, WITHOUT ROWID;

CREATE INDEX milepost_batch_task_due ON milepost_batch_task (batch_id, task) WHERE state = 'due';

-- Ended tasks with too many successors for one transaction: those up to position have been counted.
CREATE TABLE milepost_batch_spread (
    pos      INTEGER PRIMARY KEY AUTOINCREMENT,
    batch_id BLOB    NOT NULL,
    task     INTEGER NOT NULL,
    was      TEXT    NOT NULL,
    state    TEXT    NOT NULL,
    position INTEGER NOT NULL DEFAULT 0
) STRICT;

CREATE INDEX milepost_batch_spread_task ON milepost_batch_spread (batch_id, task);

-- State changes of batches, and of tasks that had no job at the time. task: NULL for the batch itself, and for tasks that its version no
-- longer contains, which have their key instead. job_id: the job that the change detached from the task. Positions are never reused, so a
-- reader resumes after the last position that it has seen, even if that row has been deleted.
CREATE TABLE milepost_batch_history (
    pos        INTEGER PRIMARY KEY AUTOINCREMENT,
    batch_id   BLOB    NOT NULL,
    at_ms      INTEGER NOT NULL,
    generation INTEGER NOT NULL,
    task       INTEGER,
    verb       TEXT    NOT NULL,
    from_state TEXT,
    to_state   TEXT    NOT NULL,
    note       TEXT,
    key        TEXT,
    job_id     BLOB
) STRICT;

CREATE INDEX milepost_batch_history_batch ON milepost_batch_history (batch_id, pos);
CREATE INDEX milepost_batch_history_task ON milepost_batch_history (batch_id, task, pos) WHERE task IS NOT NULL;

-- The counts of a batch computed from its tasks, for batches whose rows are complete (retention has not started deleting them). Used by
-- doctor.
CREATE VIEW milepost_batch_fact AS
WITH tally AS (
    SELECT batch_id, count(*) AS tasks, count(*) FILTER (WHERE state = 'waiting') AS waiting, count(*) FILTER (WHERE state = 'due') AS due,
           count(*) FILTER (WHERE state = 'active') AS active, count(*) FILTER (WHERE state = 'failed') AS failed,
           count(*) FILTER (WHERE state = 'aborted') AS aborted, count(*) FILTER (WHERE state = 'succeeded') AS succeeded,
           count(*) FILTER (WHERE state = 'skipped') AS skipped, count(*) FILTER (WHERE state = 'canceled') AS canceled
    FROM milepost_batch_task GROUP BY batch_id
)
SELECT b.id, t.*,
       CASE WHEN t.active > 0 OR (t.due > 0 AND b.stop IS NULL) THEN 'running'
            WHEN t.waiting + t.due + t.aborted + t.failed > 0 AND EXISTS (SELECT 1 FROM milepost_batch_spread s WHERE s.batch_id = b.id) THEN 'running'
            WHEN t.aborted > 0 OR (b.stop IS NOT NULL AND t.waiting + t.due > 0) THEN 'aborted'
            WHEN t.failed > 0 THEN 'failed'
            WHEN t.waiting + t.due > 0 THEN 'running'
            WHEN t.canceled > 0 THEN 'canceled'
            ELSE 'done' END AS state
FROM milepost_batch b
CROSS JOIN tally t ON t.batch_id = b.id
LEFT JOIN milepost_dag_version v ON v.id = b.version_id
LEFT JOIN milepost_batch_input i ON i.batch_id = b.id AND b.items_of IS NOT NULL
WHERE t.tasks = iif(b.items_of IS NULL, v.tasks, json_array_length(i.input));
