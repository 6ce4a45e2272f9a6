-- Takes bulk job ?1 over for run token ?2, whose definition has fingerprint ?3, at ?4. No chunk with a lower token can commit after this.
-- ?5: the transactions open on the targets' database, as a snapshot, if that is another database. No row: fenced.
INSERT INTO milepost_bulk AS b (job_id, origin, token, fingerprint, started_at_ms, updated_at_ms, snapshot)
SELECT id, id, ?2, ?3, ?4, ?4, ?5 FROM milepost_live WHERE id = ?1 AND token = ?2 AND state = 'running'
ON CONFLICT (job_id) DO UPDATE SET
    token = excluded.token,
    chunks_before = CASE WHEN b.token < excluded.token THEN b.chunks ELSE b.chunks_before END,
    fingerprint = coalesce(b.fingerprint, excluded.fingerprint),
    started_at_ms = coalesce(b.started_at_ms, excluded.started_at_ms),
    updated_at_ms = excluded.updated_at_ms,
    snapshot = coalesce(b.snapshot, excluded.snapshot)
WHERE b.token <= excluded.token
RETURNING origin, retry_of, cursor_key, surveyed_at_ms IS NOT NULL, total, total_exact, done, failed, chunks, chunk_rows,
          fingerprint, ended_at_ms IS NOT NULL, snapshot
