-- A page of audit. ?1 how many, ?2 after this pos
SELECT pos, at_ms, who, what, subject, why, detail FROM milepost_audit WHERE pos > ?2 ORDER BY pos LIMIT ?1
