-- The operators' settings for bulk job $1.
select jsonb_build_object('rows_per_s', s.rows_per_s, 'duty', s.duty, 'chunk_ms', s.chunk_ms,
                          'chunk_rows_min', s.chunk_rows_min, 'chunk_rows_max', s.chunk_rows_max,
                          'priority', l.priority)::text
from milepost.job j left join milepost.bulk_setting s on s.job_id = j.id left join milepost.live l on l.id = j.id
where j.id = $1
