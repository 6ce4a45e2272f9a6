-- Jobs whose key is owned by another job that has not taken it by a rule.
SELECT count(*) OVER () AS count, j.id AS what, 'key ' || j.key || ' of kind ' || j.kind AS detail
FROM milepost_job j
JOIN milepost_job_key k ON k.kind = j.kind AND k.key = j.key
WHERE k.job_id <> j.id AND j.key_released IS NULL
ORDER BY what
LIMIT 10
