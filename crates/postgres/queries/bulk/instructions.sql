-- Instructions for run token $2 of bulk job $1, in a separate statement after the lock: whether it still holds the job,
-- whether it must stop, and the operators' settings. Locks nothing, so that no transaction waits for a chunk.
select l.token = $2 and l.state = 'running' as holds, l.stop_verb::text as stop_verb,
       s.rows_per_s, s.duty, s.chunk_ms, s.chunk_rows_min, s.chunk_rows_max
from milepost.live l
left join milepost.bulk_setting s on s.job_id = l.id
where l.id = $1
