-- Requests a running job to stop. ?1 job, ?2 verb, ?3 when it is fenced off unless an earlier request was sooner, ?4 note
UPDATE milepost_live SET stop_verb = ?2, stop_at_ms = min(coalesce(stop_at_ms, ?3), ?3), stop_note = ?4 WHERE id = ?1 AND state = 'running'
