-- Jobs with more attempts than allowed.
SELECT count(*) OVER () AS count, s.id AS what, 'attempt ' || s.attempt || ' of ' || s.max_attempts AS detail
FROM (SELECT id, state, token, attempt, max_attempts FROM milepost_live
      UNION ALL SELECT id, state, token, attempt, max_attempts FROM milepost_ended) s
WHERE s.attempt > s.max_attempts
ORDER BY what
LIMIT 10
