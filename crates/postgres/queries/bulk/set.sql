-- Stores the operator's settings of bulk job $1; null: unchanged, or, if $7, removed, so that the definition applies.
insert into milepost.bulk_setting as s (job_id, rows_per_s, duty, chunk_ms, chunk_rows_min, chunk_rows_max)
select $1, $2, $3, $4, $5, $6
where exists (select from milepost.bulk b where b.job_id = $1)
   -- A job enqueued by a tick has no row in bulk before its first chunk.
   or exists (select from milepost.live l join milepost.job j on j.id = l.id
              join milepost.bulk_definition d on d.name = j.kind where l.id = $1)
on conflict (job_id) do update
set rows_per_s = coalesce(excluded.rows_per_s, case when not $7 then s.rows_per_s end),
    duty = coalesce(excluded.duty, case when not $7 then s.duty end),
    chunk_ms = coalesce(excluded.chunk_ms, case when not $7 then s.chunk_ms end),
    chunk_rows_min = coalesce(excluded.chunk_rows_min, case when not $7 then s.chunk_rows_min end),
    chunk_rows_max = coalesce(excluded.chunk_rows_max, case when not $7 then s.chunk_rows_max end),
    set_at = now()
returning 1
