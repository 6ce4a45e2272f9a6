-- Jobs: the request (job), the current state (live, ended) and the state changes (history). Times are Unix milliseconds of this machine's
-- clock. States and verbs are those of the domain (milepost-core).

-- A job as it was enqueued. Rows are inserted and deleted; only batch_id and task are updated.
-- nominal_at_ms: the tick of a schedule that the job is for.
-- batch_id, task: the task for which the job was created. The task number changes when the batch switches to another version, in which the
-- task has another number or does not exist (NULL). A job that is rerun separately has no task.
CREATE TABLE milepost_job (
    id            BLOB    NOT NULL PRIMARY KEY,
    kind          TEXT    NOT NULL,
    queue         TEXT    NOT NULL,
    payload       TEXT    NOT NULL,
    key           TEXT,
    group_key     TEXT,
    priority      INTEGER NOT NULL,
    max_attempts  INTEGER NOT NULL,
    timeout_ms    INTEGER,
    created_at_ms INTEGER NOT NULL,
    -- The trace span that enqueued the job (W3C Trace Context).
    traceparent   TEXT,
    nominal_at_ms INTEGER,
    batch_id      BLOB,
    task          INTEGER
) STRICT, WITHOUT ROWID;

-- A search by key finds every job that was enqueued with it, including jobs that no longer own it.
CREATE INDEX milepost_job_key_id ON milepost_job (key, id) WHERE key IS NOT NULL;
CREATE INDEX milepost_job_batch ON milepost_job (batch_id, task) WHERE batch_id IS NOT NULL;

-- At most one job of a kind owns a key at a time. The key is the first column so that it can be searched without the kind.
CREATE TABLE milepost_job_key (
    kind            TEXT NOT NULL,
    key             TEXT NOT NULL,
    job_id          BLOB NOT NULL,
    -- The end time of a job whose other rows have been deleted; NULL while they exist.
    job_ended_at_ms INTEGER,
    PRIMARY KEY (key, kind)
) STRICT, WITHOUT ROWID;

CREATE INDEX milepost_job_key_due ON milepost_job_key (job_ended_at_ms) WHERE job_ended_at_ms IS NOT NULL;

-- The state of jobs that have not ended, and of failed jobs (dead letters).
CREATE TABLE milepost_live (
    id            BLOB    NOT NULL PRIMARY KEY,
    kind          TEXT    NOT NULL,
    queue         TEXT    NOT NULL,
    priority      INTEGER NOT NULL,
    state         TEXT    NOT NULL,
    -- The earliest time at which the job can be claimed; NULL while it cannot be.
    ready_at_ms   INTEGER,
    -- The earliest start time of a blocked job. timed = 1: that time is in the future, so the job does not wait for a slot of its group
    -- yet.
    due_at_ms     INTEGER,
    timed         INTEGER,
    attempt       INTEGER NOT NULL,
    max_attempts  INTEGER NOT NULL,
    token         INTEGER NOT NULL,
    worker_id     INTEGER,
    claim_id      INTEGER,
    group_key     TEXT,
    started_at_ms INTEGER,
    -- The stop request for a running job: its verb, the deadline after which the run is fenced off, and the reason.
    stop_verb     TEXT,
    stop_at_ms    INTEGER,
    stop_note     TEXT
) STRICT, WITHOUT ROWID;

CREATE INDEX milepost_live_claim ON milepost_live (queue, kind, priority, ready_at_ms, id) WHERE ready_at_ms IS NOT NULL;
CREATE INDEX milepost_live_worker ON milepost_live (worker_id) WHERE worker_id IS NOT NULL;
CREATE INDEX milepost_live_waiting ON milepost_live (group_key, priority, due_at_ms, id)
    WHERE group_key IS NOT NULL AND due_at_ms IS NOT NULL AND timed IS NULL;
CREATE INDEX milepost_live_timed ON milepost_live (due_at_ms) WHERE timed = 1;
-- Jobs that neither wait for a worker nor run. Jobs on the hot path never enter this index.
CREATE INDEX milepost_live_aside ON milepost_live (state, id) WHERE state <> 'pending' AND state <> 'running';
CREATE INDEX milepost_live_stop ON milepost_live (stop_at_ms, worker_id) WHERE stop_at_ms IS NOT NULL;

-- The final state of ended jobs. A rerun moves the row back to live.
CREATE TABLE milepost_ended (
    id            BLOB    NOT NULL PRIMARY KEY,
    kind          TEXT    NOT NULL,
    queue         TEXT    NOT NULL,
    state         TEXT    NOT NULL,
    attempt       INTEGER NOT NULL,
    max_attempts  INTEGER NOT NULL,
    token         INTEGER NOT NULL,
    ended_at_ms   INTEGER NOT NULL,
    started_at_ms INTEGER,
    result        TEXT
) STRICT, WITHOUT ROWID;

CREATE INDEX milepost_ended_aside ON milepost_ended (state, id) WHERE state <> 'succeeded';

-- One row for each state change, written in the same transaction.
CREATE TABLE milepost_history (
    pos           INTEGER PRIMARY KEY,
    job_id        BLOB    NOT NULL,
    at_ms         INTEGER NOT NULL,
    verb          TEXT    NOT NULL,
    from_state    TEXT,
    to_state      TEXT    NOT NULL,
    attempt       INTEGER NOT NULL,
    token         INTEGER NOT NULL,
    worker_id     INTEGER,
    ready_at_ms   INTEGER,
    error_code    TEXT,
    error_message TEXT,
    note          TEXT
) STRICT;

CREATE INDEX milepost_history_job ON milepost_history (job_id, pos);

-- Attempts: each claim with the state change that ended it.
CREATE VIEW milepost_attempt AS
SELECT
    claim.job_id,
    claim.attempt,
    claim.token,
    claim.worker_id,
    claim.at_ms AS started_at_ms,
    finish.at_ms AS ended_at_ms,
    finish.verb AS outcome,
    finish.error_code,
    finish.error_message
FROM milepost_history AS claim
LEFT JOIN milepost_history AS finish
    ON finish.job_id = claim.job_id AND finish.token = claim.token AND finish.from_state = 'running'
WHERE claim.verb = 'claim';

-- The progress that a job last reported, and the checkpoint from which its next attempt can resume.
CREATE TABLE milepost_progress (
    job_id        BLOB NOT NULL PRIMARY KEY,
    done          INTEGER,
    total         INTEGER,
    message       TEXT,
    checkpoint    TEXT,
    updated_at_ms INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- Process incarnations of workers. Ids are never reused.
CREATE TABLE milepost_worker (
    id                  INTEGER PRIMARY KEY AUTOINCREMENT,
    name                TEXT    NOT NULL,
    queues              TEXT    NOT NULL,
    kinds               TEXT    NOT NULL,
    lease_ms            INTEGER NOT NULL,
    -- The backoff policy of each kind (JSON).
    backoffs            TEXT    NOT NULL DEFAULT '{}',
    started_at_ms       INTEGER NOT NULL,
    heartbeat_at_ms     INTEGER NOT NULL,
    lease_expires_at_ms INTEGER NOT NULL,
    ended_at_ms         INTEGER,
    died                INTEGER NOT NULL DEFAULT 0
) STRICT;

CREATE INDEX milepost_worker_alive ON milepost_worker (lease_expires_at_ms) WHERE ended_at_ms IS NULL;
CREATE INDEX milepost_worker_ended ON milepost_worker (ended_at_ms) WHERE ended_at_ms IS NOT NULL;

-- Queues that have been paused at least once. A queue does not need a row.
CREATE TABLE milepost_queue (
    name         TEXT    NOT NULL PRIMARY KEY,
    paused_at_ms INTEGER
) STRICT, WITHOUT ROWID;

-- The jobs that hold slots of groups. A group has one slot unless a limit is set.
CREATE TABLE milepost_group_slot (
    group_key TEXT    NOT NULL,
    slot      INTEGER NOT NULL,
    job_id    BLOB    NOT NULL,
    PRIMARY KEY (group_key, slot)
) STRICT, WITHOUT ROWID;

CREATE INDEX milepost_group_slot_job ON milepost_group_slot (job_id);
