-- Raises tokens in ended that are lower than in their history. ?1 at most
UPDATE milepost_ended SET token = (SELECT max(h.token) FROM milepost_history h WHERE h.job_id = milepost_ended.id)
WHERE id IN (
    SELECT s.id FROM milepost_ended s
    WHERE s.token < (SELECT max(h.token) FROM milepost_history h WHERE h.job_id = s.id)
    ORDER BY s.id LIMIT ?1
)
RETURNING id
