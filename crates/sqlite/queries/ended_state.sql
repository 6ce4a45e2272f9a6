-- Returns the state of an ended job. ?1 job
SELECT milepost_ended.state, milepost_ended.attempt, milepost_ended.token, milepost_job.group_key
FROM milepost_ended CROSS JOIN milepost_job ON milepost_job.id = milepost_ended.id WHERE milepost_ended.id = ?1
