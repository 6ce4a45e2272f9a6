-- How many entries of the audit there are to forget. ?1 those from before this time
SELECT count(*) FROM milepost_audit
WHERE pos < coalesce((SELECT pos FROM milepost_audit WHERE pos > 0 AND at_ms >= ?1 ORDER BY pos LIMIT 1), 9223372036854775807)
