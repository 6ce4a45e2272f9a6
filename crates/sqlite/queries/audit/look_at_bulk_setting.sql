-- Returns the settings of bulk job ?1 made by operators.
SELECT json_object('rows_per_s', s.rows_per_s, 'duty', s.duty, 'chunk_ms', s.chunk_ms, 'chunk_rows_min', s.chunk_rows_min,
                   'chunk_rows_max', s.chunk_rows_max, 'priority', l.priority)
FROM milepost_job j LEFT JOIN milepost_bulk_setting s ON s.job_id = j.id LEFT JOIN milepost_live l ON l.id = j.id
WHERE j.id = ?1
