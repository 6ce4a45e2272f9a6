-- Whether history holds this very end of a run. ?1 job, ?2 token, ?3 verb
SELECT 1 FROM history WHERE job_id = ?1 AND token = ?2 AND verb = ?3 AND from_state = 'running'
