-- Where a job stands that has ended. ?1 job
SELECT ended.state, ended.attempt, ended.token, job.group_key
FROM ended CROSS JOIN job ON job.id = ended.id WHERE ended.id = ?1
