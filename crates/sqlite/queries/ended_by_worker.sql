-- Returns a row if history contains this end of a run, reported by its worker and not recorded by a rescue. ?1 job, ?2 token, ?3 verb
SELECT 1 FROM milepost_history WHERE job_id = ?1 AND token = ?2 AND verb = ?3 AND from_state = 'running'
  AND error_code IS NOT 'lease_lost'
