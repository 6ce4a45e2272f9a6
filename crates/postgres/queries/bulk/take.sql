-- Takes bulk job $1 over for run token $2, whose definition has fingerprint $3: no chunk with a lower token commits
-- after this. $4: who is writing among its targets, as a snapshot, when those are on another database; null: they are in
-- this one, and so is the session that does its chunks. No row: fenced.
with held as materialized (
    -- Locked, so that a rescue cannot pass between this look and our commit.
    select id from milepost.live where id = $1 and token = $2 and state = 'running' for share
)
insert into milepost.bulk as b (job_id, origin, token, fingerprint, snapshot, backend_pid, backend_started_at,
                                started_at, updated_at)
select id, id, $2, $3, coalesce($4::text::pg_snapshot, pg_current_snapshot()),
       case when $4 is null then pg_backend_pid() end,
       case when $4 is null then (select backend_start from pg_stat_get_activity(pg_backend_pid())) end, now(), now()
from held
on conflict (job_id) do update
set token = excluded.token,
    fingerprint = coalesce(b.fingerprint, excluded.fingerprint),
    snapshot = coalesce(b.snapshot, excluded.snapshot),
    backend_pid = excluded.backend_pid,
    backend_started_at = excluded.backend_started_at,
    started_at = coalesce(b.started_at, excluded.started_at),
    updated_at = excluded.updated_at
where b.token <= excluded.token
returning b.origin, b.retry_of, b.cursor_key::text as cursor_key, b.surveyed_at is not null as surveyed, b.total,
          b.total_exact, b.done, b.failed, b.chunks, b.chunk_rows, b.fingerprint, b.ended_at is not null as ended,
          b.snapshot::text as since
