-- Returns the job that owns a key, with its request; the request is NULL if only the key is left. ?1 kind, ?2 key
SELECT k.job_id, j.queue, j.group_key, j.payload
FROM milepost_job_key AS k
LEFT JOIN milepost_job AS j ON j.id = k.job_id
WHERE k.kind = ?1 AND k.key = ?2
