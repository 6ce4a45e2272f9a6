-- Returns a row if history contains this end of a run, reported by its worker and not recorded by a rescue. A requested stop replaces the verb, but
-- not the failure. ?1 job, ?2 token, ?3 verb, ?4 error code (NULL: none)
SELECT 1 FROM milepost_history WHERE job_id = ?1 AND token = ?2 AND from_state = 'running' AND error_code IS NOT 'lease_lost'
  AND (verb = ?3 OR verb IN ('cancel', 'abort') AND error_code = ?4 OR verb = 'cancel' AND ?3 = 'abort')
