-- Takes over bulk job $1 for run token $2, whose definition has fingerprint $3: after this, no chunk with a lower token
-- commits. $4: the snapshot of since.sql if the targets are in another database; null: they are in this database, and this
-- session processes the chunks. The snapshot then ends after the transaction id of this statement, for the reason given in
-- since.sql. No row: fenced.
with held as materialized (
    -- Locked until the commit, so that the job is not rescued in between.
    select id from milepost.live where id = $1 and token = $2 and state = 'running' for share
)
insert into milepost.bulk as b (job_id, origin, token, fingerprint, snapshot, backend_pid, backend_started_at,
                                started_at, updated_at)
select id, id, $2, $3,
       coalesce($4::text, format('%1$s:%1$s:', pg_current_xact_id()::text::bigint + 1))::pg_snapshot,
       case when $4 is null then pg_backend_pid() end,
       case when $4 is null then (select backend_start from pg_stat_get_activity(pg_backend_pid())) end, now(), now()
from held
on conflict (job_id) do update
set token = excluded.token,
    chunks_before = case when b.token < excluded.token then b.chunks else b.chunks_before end,
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
