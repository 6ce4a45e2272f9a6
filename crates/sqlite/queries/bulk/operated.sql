-- The states that the first ?2 jobs of an operation on many jobs (run ?1) have now, and how many have each.
SELECT coalesce(l.state, e.state) AS state, count(*) AS jobs
FROM milepost_bulk b
CROSS JOIN milepost_bulk_target t ON t.run = b.origin AND t.n <= ?2
LEFT JOIN milepost_live l ON l.id = unhex(replace(t.row ->> 'job', '-', ''))
LEFT JOIN milepost_ended e ON e.id = unhex(replace(t.row ->> 'job', '-', ''))
WHERE b.job_id = ?1 AND coalesce(l.state, e.state) IS NOT NULL
GROUP BY 1
