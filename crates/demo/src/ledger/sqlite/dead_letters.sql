-- The keys of the dead letters in queue ?1, none of which is older than the id ?2.
SELECT j.key
FROM milepost_job AS j
JOIN milepost_live AS l ON l.id = j.id
WHERE j.id >= ?2 AND j.queue = ?1 AND l.state = 'failed'
