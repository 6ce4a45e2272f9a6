-- Raises tokens in live that are lower than in their history, unless the job runs. ?1 at most
UPDATE milepost_live SET token = (SELECT max(h.token) FROM milepost_history h WHERE h.job_id = milepost_live.id)
WHERE id IN (
    SELECT s.id FROM milepost_live s
    WHERE s.token < (SELECT max(h.token) FROM milepost_history h WHERE h.job_id = s.id) AND s.state <> 'running'
    ORDER BY s.id LIMIT ?1
)
RETURNING id
