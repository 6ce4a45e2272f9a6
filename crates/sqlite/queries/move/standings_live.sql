-- Returns live jobs with state and token. ?1 how many, ?2 after this job
SELECT id, state, token FROM milepost_live WHERE id > ?2 ORDER BY id LIMIT ?1
