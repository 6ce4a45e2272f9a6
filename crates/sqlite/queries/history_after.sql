-- The next entries of history, in the order of time, but for the newest of all: while that stays, no place is ever
-- given again. ?1 after this place, ?2 how many
SELECT pos, job_id, at_ms, to_state FROM milepost_history
WHERE pos > ?1 AND pos < (SELECT max(pos) FROM milepost_history)
ORDER BY pos
LIMIT ?2
