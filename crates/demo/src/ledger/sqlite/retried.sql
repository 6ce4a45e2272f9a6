-- The keys of jobs in queue ?1, none of them older than the id ?2, that were retried.
SELECT DISTINCT j.key
FROM milepost_job AS j
JOIN milepost_history AS h ON h.job_id = j.id
WHERE j.id >= ?2 AND j.queue = ?1 AND h.verb = 'retry'
