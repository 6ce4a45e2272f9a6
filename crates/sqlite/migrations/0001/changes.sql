-- State changes as events: the changes that subscriptions request, and the content of their events.

-- what: 'kind' of jobs, or 'dag' of batches. While the table has rows, triggers on the histories turn state changes into events.
CREATE TABLE milepost_change_source (
    what         TEXT NOT NULL CHECK (what IN ('kind', 'dag')),
    name         TEXT NOT NULL,
    subscription TEXT NOT NULL REFERENCES milepost_subscription ON DELETE CASCADE,
    PRIMARY KEY (what, name, subscription)
) STRICT, WITHOUT ROWID;
CREATE INDEX milepost_change_source_subscription ON milepost_change_source (subscription);

-- State changes of jobs as events. Fields without a value are omitted from the payload.
CREATE VIEW milepost_job_change AS
SELECT h.pos, h.at_ms, 'milepost.job.' || j.kind AS aggregate_type, h.id AS aggregate_id, 'milepost.job.' || h.to_state AS event_type,
       json_patch('{}', json_object(
           'job_id', h.id, 'kind', j.kind, 'queue', j.queue, 'key', j.key,
           'batch_id', CASE WHEN j.batch_id IS NOT NULL THEN lower(printf('%s-%s-%s-%s-%s', substr(hex(j.batch_id), 1, 8),
                            substr(hex(j.batch_id), 9, 4), substr(hex(j.batch_id), 13, 4), substr(hex(j.batch_id), 17, 4),
                            substr(hex(j.batch_id), 21))) END,
           'task', (SELECT coalesce(d.key, CAST(j.task AS TEXT)) FROM milepost_batch b
                    LEFT JOIN milepost_dag_task d ON b.items_of IS NULL AND d.version_id = b.version_id AND d.task = j.task
                    WHERE b.id = j.batch_id AND j.task IS NOT NULL),
           'verb', h.verb, 'from', h.from_state, 'to', h.to_state, 'attempt', h.attempt, 'run_token', h.token, 'worker_id', h.worker_id,
           'ready_at', strftime('%Y-%m-%dT%H:%M:%fZ', h.ready_at_ms / 1000.0, 'unixepoch'),
           'error_code', h.error_code, 'error_message', h.error_message, 'note', h.note,
           'at', strftime('%Y-%m-%dT%H:%M:%fZ', h.at_ms / 1000.0, 'unixepoch'))) AS payload
FROM (SELECT *, lower(printf('%s-%s-%s-%s-%s', substr(hex(job_id), 1, 8), substr(hex(job_id), 9, 4), substr(hex(job_id), 13, 4),
                             substr(hex(job_id), 17, 4), substr(hex(job_id), 21))) AS id FROM milepost_history) h
CROSS JOIN milepost_job j ON j.id = h.job_id;

-- State changes of batches as events, without those of their tasks.
CREATE VIEW milepost_batch_change AS
SELECT h.pos, h.at_ms, 'milepost.batch.' || b.dag AS aggregate_type, h.id AS aggregate_id, 'milepost.batch.' || h.to_state AS event_type,
       json_patch('{}', json_object(
           'batch_id', h.id, 'dag', b.dag, 'version', (SELECT v.version FROM milepost_dag_version v WHERE v.id = b.version_id),
           'biz_key', b.key,
           'parent_id', CASE WHEN b.parent_id IS NOT NULL THEN lower(printf('%s-%s-%s-%s-%s', substr(hex(b.parent_id), 1, 8),
                             substr(hex(b.parent_id), 9, 4), substr(hex(b.parent_id), 13, 4), substr(hex(b.parent_id), 17, 4),
                             substr(hex(b.parent_id), 21))) END,
           'verb', h.verb, 'from', h.from_state, 'to', h.to_state, 'note', h.note,
           'at', strftime('%Y-%m-%dT%H:%M:%fZ', h.at_ms / 1000.0, 'unixepoch'))) AS payload
FROM (SELECT *, lower(printf('%s-%s-%s-%s-%s', substr(hex(batch_id), 1, 8), substr(hex(batch_id), 9, 4), substr(hex(batch_id), 13, 4),
                             substr(hex(batch_id), 17, 4), substr(hex(batch_id), 21))) AS id FROM milepost_batch_history) h
CROSS JOIN milepost_batch b ON b.id = h.batch_id
WHERE h.task IS NULL AND h.key IS NULL;
