-- Withdraws the abort that was requested of a running job. ?1 job
UPDATE milepost_live SET stop_verb = NULL, stop_at_ms = NULL, stop_note = NULL WHERE id = ?1 AND stop_verb = 'abort'
