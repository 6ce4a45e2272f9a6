-- Whether history holds this very end of a run, by its worker's word: a rescue records one, too. ?1 job, ?2 token, ?3 verb
SELECT 1 FROM milepost_history WHERE job_id = ?1 AND token = ?2 AND verb = ?3 AND from_state = 'running'
  AND error_code IS NOT 'lease_lost'
