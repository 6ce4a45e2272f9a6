-- Bulk jobs: ?1 one of them, ?2 definition, ?3 state, ?4 group, ?5 type, ?6 category (NULL: any); at most ?7; ?8 now; ?9 if not NULL: only
-- those that have ended and have an id below it. Running and waiting bulk jobs come first, in the order in which they will run; then the
-- others, newest first.
WITH candidates AS MATERIALIZED (
    -- Jobs that were enqueued before their bulk job was defined have no row in milepost_bulk before their first chunk.
    SELECT s.job_id AS id FROM milepost_group_slot s
    WHERE s.group_key IN (SELECT group_key FROM milepost_bulk_definition)
    UNION
    -- These two indexes contain only jobs that wait for a slot or for their time.
    SELECT w.id FROM milepost_live w INDEXED BY milepost_live_waiting
    WHERE w.group_key IN (SELECT group_key FROM milepost_bulk_definition) AND w.due_at_ms IS NOT NULL AND w.timed IS NULL
    UNION
    SELECT t.id FROM milepost_live t INDEXED BY milepost_live_timed
    WHERE t.timed = 1 AND t.group_key IN (SELECT group_key FROM milepost_bulk_definition)
    UNION
    SELECT j.id FROM milepost_job j WHERE j.id = ?1
    UNION
    SELECT b.job_id FROM milepost_bulk b
),
seen AS MATERIALIZED (
    SELECT c.id, j.kind AS name, j.group_key, j.created_at_ms, coalesce(l.priority, j.priority) AS priority,
           coalesce(l.state, e.state) AS state, l.stop_verb, coalesce(l.due_at_ms, l.ready_at_ms) AS due_at_ms, l.id IS NOT NULL AS is_live
    FROM candidates c
    JOIN milepost_job j ON j.id = c.id
    LEFT JOIN milepost_live l ON l.id = c.id
    LEFT JOIN milepost_ended e ON e.id = c.id
),
placed AS MATERIALIZED (
    SELECT s.*,
           CASE WHEN state = 'blocked' AND is_due THEN
               row_number() OVER (PARTITION BY group_key, state, is_due ORDER BY priority, due_at_ms, id) END AS next
    FROM (SELECT *, due_at_ms IS NULL OR due_at_ms <= ?8 AS is_due FROM seen) s
)
SELECT p.id, p.name, d.type, d.category, p.group_key, p.state AS state, p.stop_verb AS stop_verb, p.priority, p.next,
       CASE WHEN p.state IN ('blocked', 'pending', 'retry_wait') THEN p.due_at_ms END AS due_at_ms, p.created_at_ms, b.started_at_ms, b.updated_at_ms, b.ended_at_ms,
       b.cursor_key AS cursor_key, b.upper_key AS upper_key, b.total, b.total_exact,
       coalesce(b.done, 0) AS done, coalesce(b.failed, 0) AS failed, coalesce(b.chunks, 0) AS chunks,
       b.chunk_rows, b.chunk_ms, coalesce(b.busy_ms, 0) AS busy_ms, coalesce(b.held_ms, 0) AS held_ms,
       b.throttle, b.throttle_since_ms, b.retry_of, d.effects, d.place, f.name AS file, f.rows AS file_rows,
       s.rows_per_s AS set_rows_per_s, s.duty AS set_duty, s.chunk_ms AS set_chunk_ms,
       s.chunk_rows_min AS set_chunk_rows_min, s.chunk_rows_max AS set_chunk_rows_max
FROM placed p
LEFT JOIN milepost_bulk b ON b.job_id = p.id
LEFT JOIN milepost_bulk_setting s ON s.job_id = p.id
LEFT JOIN milepost_bulk_file f ON f.run = b.origin
LEFT JOIN milepost_bulk_definition d ON d.name = p.name
WHERE (b.job_id IS NOT NULL OR d.name IS NOT NULL)
  AND (p.id = ?1 OR ?1 IS NULL)
  AND (p.name = ?2 OR ?2 IS NULL)
  AND (p.state = ?3 OR ?3 IS NULL)
  AND (p.group_key = ?4 OR ?4 IS NULL)
  AND (d.type = ?5 OR ?5 IS NULL)
  AND (d.category = ?6 OR ?6 IS NULL)
  AND (?9 IS NULL OR (p.id < ?9 AND p.state NOT IN ('running', 'pending', 'retry_wait', 'blocked')))
ORDER BY CASE p.state WHEN 'running' THEN 0 WHEN 'pending' THEN 1 WHEN 'retry_wait' THEN 1 WHEN 'blocked' THEN 2 ELSE 3 END,
         CASE WHEN p.state IN ('blocked', 'pending', 'retry_wait') THEN p.group_key END,
         p.next IS NULL, p.next, CASE WHEN p.state IN ('running', 'blocked', 'pending', 'retry_wait') THEN p.due_at_ms END,
         p.id DESC
LIMIT ?7
