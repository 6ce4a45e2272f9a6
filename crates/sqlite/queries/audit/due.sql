-- Counts the audit entries that retention can delete. ?1 those before this time
SELECT count(*) FROM milepost_audit
WHERE pos < coalesce((SELECT pos FROM milepost_audit WHERE pos > 0 AND at_ms >= ?1 ORDER BY pos LIMIT 1), 9223372036854775807)
