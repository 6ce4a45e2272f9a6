-- Jobs: what was asked (job), where it stands (live, ended), what happened (history).
-- Times are Unix milliseconds of this machine's clock. States and verbs are the words of the domain.

-- What was asked. Append-only: nothing here is ever rewritten.
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
    -- The span of a trace that it follows from (W3C Trace Context).
    traceparent   TEXT
) STRICT, WITHOUT ROWID;

-- Somebody who looks for a key finds all that ever had it, whether it still holds it or not.
CREATE INDEX milepost_job_key_id ON milepost_job (key, id) WHERE key IS NOT NULL;

-- At most one job of a kind ever has a key. The key comes first so that it can be looked up without its kind.
CREATE TABLE milepost_job_key (
    kind   TEXT NOT NULL,
    key    TEXT NOT NULL,
    job_id BLOB NOT NULL,
    PRIMARY KEY (key, kind)
) STRICT, WITHOUT ROWID;

-- Where a job stands that still needs attention.
CREATE TABLE milepost_live (
    id            BLOB    NOT NULL PRIMARY KEY,
    kind          TEXT    NOT NULL,
    queue         TEXT    NOT NULL,
    priority      INTEGER NOT NULL,
    state         TEXT    NOT NULL,
    -- When it may be claimed; NULL while it may not.
    ready_at_ms   INTEGER,
    -- Its own time, kept while it is blocked; timed: that has not come, so it does not yet wait for a slot of its
    -- group.
    due_at_ms     INTEGER,
    timed         INTEGER,
    attempt       INTEGER NOT NULL,
    max_attempts  INTEGER NOT NULL,
    token         INTEGER NOT NULL,
    worker_id     INTEGER,
    claim_id      INTEGER,
    group_key     TEXT,
    started_at_ms INTEGER,
    -- What was asked of the running job, when it is fenced off at the latest, and why.
    stop_verb     TEXT,
    stop_at_ms    INTEGER,
    stop_note     TEXT
) STRICT, WITHOUT ROWID;

CREATE INDEX milepost_live_claim ON milepost_live (queue, kind, priority, ready_at_ms, id) WHERE ready_at_ms IS NOT NULL;
CREATE INDEX milepost_live_worker ON milepost_live (worker_id) WHERE worker_id IS NOT NULL;
CREATE INDEX milepost_live_waiting ON milepost_live (group_key, priority, due_at_ms, id)
    WHERE group_key IS NOT NULL AND due_at_ms IS NOT NULL AND timed IS NULL;
CREATE INDEX milepost_live_timed ON milepost_live (due_at_ms) WHERE timed = 1;
CREATE INDEX milepost_live_stop ON milepost_live (stop_at_ms, worker_id) WHERE stop_at_ms IS NOT NULL;

-- How a job ended that needs no attention any more. A rerun takes it back to live.
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

-- What happened: one row for every state change, written in the transaction that makes it.
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

-- Attempts: a claim and what ended it.
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

-- How far a job said it is, and where its next attempt can go on from.
CREATE TABLE milepost_progress (
    job_id        BLOB NOT NULL PRIMARY KEY,
    done          INTEGER,
    total         INTEGER,
    message       TEXT,
    checkpoint    TEXT,
    updated_at_ms INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- Process incarnations. Ids are never used again.
CREATE TABLE milepost_worker (
    id                  INTEGER PRIMARY KEY AUTOINCREMENT,
    name                TEXT    NOT NULL,
    queues              TEXT    NOT NULL,
    kinds               TEXT    NOT NULL,
    lease_ms            INTEGER NOT NULL,
    -- How its kinds wait after a failure: policies by kind (JSON).
    backoffs            TEXT    NOT NULL DEFAULT '{}',
    started_at_ms       INTEGER NOT NULL,
    heartbeat_at_ms     INTEGER NOT NULL,
    lease_expires_at_ms INTEGER NOT NULL,
    ended_at_ms         INTEGER,
    died                INTEGER NOT NULL DEFAULT 0
) STRICT;

CREATE INDEX milepost_worker_alive ON milepost_worker (lease_expires_at_ms) WHERE ended_at_ms IS NULL;
CREATE INDEX milepost_worker_ended ON milepost_worker (ended_at_ms) WHERE ended_at_ms IS NOT NULL;

-- Queues that somebody has paused at some time. A queue needs no row to exist.
CREATE TABLE milepost_queue (
    name         TEXT    NOT NULL PRIMARY KEY,
    paused_at_ms INTEGER
) STRICT, WITHOUT ROWID;

-- Who holds a group. There is one slot a group: its jobs run one at a time.
CREATE TABLE milepost_group_slot (
    group_key TEXT    NOT NULL,
    slot      INTEGER NOT NULL,
    job_id    BLOB    NOT NULL,
    PRIMARY KEY (group_key, slot)
) STRICT, WITHOUT ROWID;
