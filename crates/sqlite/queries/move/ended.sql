-- A page of ended. ?1 how many, ?2 after this id
SELECT id, state, ended_at_ms, started_at_ms, token, attempt, max_attempts, result
FROM milepost_ended WHERE id > ?2 ORDER BY id LIMIT ?1
