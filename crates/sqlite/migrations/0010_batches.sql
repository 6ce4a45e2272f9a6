-- Batches: DAGs and their versions, batches and their tasks as narrow rows of counters.

-- A version of a DAG: never changed. version: the SHA-256 of its canonical form, as 64 hexadecimal digits.
CREATE TABLE milepost_dag_version (
    id            INTEGER PRIMARY KEY AUTOINCREMENT,
    name          TEXT    NOT NULL,
    number        INTEGER NOT NULL,
    version       TEXT    NOT NULL,
    tasks         INTEGER NOT NULL,
    edges         INTEGER NOT NULL,
    depth         INTEGER NOT NULL,
    created_at_ms INTEGER NOT NULL,
    -- What can be long stands last: to read a column, those before it are read.
    input_schema  TEXT,
    canonical     TEXT    NOT NULL,
    UNIQUE (name, version),
    UNIQUE (name, number)
) STRICT;

-- Which version a batch gets that names none: its id.
CREATE TABLE milepost_dag (
    name          TEXT    NOT NULL PRIMARY KEY,
    latest        INTEGER NOT NULL,
    updated_at_ms INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- The tasks of a version, by number: the place of the key among all keys in order. Lists of tasks are JSON arrays.
-- plain: a job whose payload is ready, so that it needs no more than its counters to run. spec: all else that
-- the definition says. reads: the predecessors whose results its expressions read.
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

-- A run of a version. The counts are of its tasks by state.
-- stop: what an operator wants: nothing starts. items_of: its tasks are the items of a list (its input) over which this
-- task of the parent's version goes. nominal_zone: the time zone of the date of nominal_at_ms.
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

-- What a batch was started with. Apart from its counts: a row that changes is written anew as a whole.
CREATE TABLE milepost_batch_input (
    batch_id BLOB NOT NULL PRIMARY KEY,
    input    TEXT NOT NULL
) STRICT, WITHOUT ROWID;

-- A task of a batch. pre_cnt: predecessors that have not ended; the four others: those that have, by how.
-- job_id: its job, in the generation in which it was decided last; child_id: the batch that it is.
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

-- Ends whose successors are too many for one transaction: those up to position are counted.
CREATE TABLE milepost_batch_spread (
    pos      INTEGER PRIMARY KEY AUTOINCREMENT,
    batch_id BLOB    NOT NULL,
    task     INTEGER NOT NULL,
    was      TEXT    NOT NULL,
    state    TEXT    NOT NULL,
    position INTEGER NOT NULL DEFAULT 0
) STRICT;

CREATE INDEX milepost_batch_spread_task ON milepost_batch_spread (batch_id, task);

-- What happened to batches, and to tasks that had no job then. task: NULL for the batch itself, and for tasks that its version
-- does not have any more: these have their key. job_id: the job that the task had, where this took it away. A place is never given twice:
-- who watches goes on behind the last one that it saw, also when that was forgotten.
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

-- What the tasks of a batch say of it, where all are there: retention has not begun with it. For the doctor.
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

-- The task that a job was made for. What else is in milepost_job never changes; the number does when its batch goes over to another
-- version, in which the task has another one or (NULL) is not any more. A job that is run again by itself is no task.
ALTER TABLE milepost_job ADD COLUMN batch_id BLOB;
ALTER TABLE milepost_job ADD COLUMN task INTEGER;

CREATE INDEX milepost_job_batch ON milepost_job (batch_id, task) WHERE batch_id IS NOT NULL;

-- dag: what the schedule starts batches of. Then payload is their input, and what else is of jobs says nothing.
-- refused_at_ms, refusal: the last tick, if its batch could not be started, and why.
ALTER TABLE milepost_schedule ADD COLUMN dag TEXT;
ALTER TABLE milepost_schedule ADD COLUMN refused_at_ms INTEGER;
ALTER TABLE milepost_schedule ADD COLUMN refusal TEXT;
