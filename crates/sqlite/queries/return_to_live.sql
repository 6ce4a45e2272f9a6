-- Takes an ended job back to live, with its last token. ?1 job, ?2 state, ?3 ready at, ?4 due at, ?5 max attempts
INSERT INTO live (id, kind, queue, priority, state, ready_at_ms, due_at_ms, attempt, max_attempts, token, group_key)
SELECT ended.id, ended.kind, ended.queue, job.priority, ?2, ?3, ?4, ended.attempt, ?5, ended.token, job.group_key
FROM ended JOIN job ON job.id = ended.id WHERE ended.id = ?1
