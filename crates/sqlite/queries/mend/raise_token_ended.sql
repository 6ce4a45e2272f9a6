-- Raises tokens of rows of ended that are behind their history. ?1 at most
UPDATE ended SET token = (SELECT max(h.token) FROM history h WHERE h.job_id = ended.id)
WHERE id IN (
    SELECT s.id FROM ended s
    WHERE s.token < (SELECT max(h.token) FROM history h WHERE h.job_id = s.id)
    ORDER BY s.id LIMIT ?1
)
RETURNING id
