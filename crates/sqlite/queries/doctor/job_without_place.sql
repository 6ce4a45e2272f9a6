-- Jobs that are neither live nor ended.
SELECT count(*) OVER () AS count, j.id AS what, 'last state in its history: ' || coalesce((SELECT h.to_state FROM milepost_history h WHERE h.job_id = j.id ORDER BY h.pos DESC LIMIT 1), 'none') AS detail
FROM milepost_job j
WHERE NOT EXISTS (SELECT 1 FROM milepost_live l WHERE l.id = j.id) AND NOT EXISTS (SELECT 1 FROM milepost_ended e WHERE e.id = j.id)
ORDER BY what
LIMIT 10
