-- Deletes jobs from ended that are live according to their history. ?1 at most
DELETE FROM milepost_ended
WHERE id IN (
    SELECT l.id FROM milepost_live l JOIN milepost_ended e ON e.id = l.id
    WHERE l.state = (SELECT h.to_state FROM milepost_history h WHERE h.job_id = l.id ORDER BY h.pos DESC LIMIT 1)
    ORDER BY l.id LIMIT ?1
)
RETURNING id
