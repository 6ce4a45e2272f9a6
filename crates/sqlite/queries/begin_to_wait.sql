-- Moves jobs whose time has come into the wait for a slot of their group. ?1 now
UPDATE milepost_live SET timed = NULL
WHERE id IN (
    SELECT id FROM milepost_live INDEXED BY milepost_live_timed
    WHERE timed = 1 AND due_at_ms <= ?1
    ORDER BY due_at_ms
    LIMIT 1000
)
RETURNING group_key
