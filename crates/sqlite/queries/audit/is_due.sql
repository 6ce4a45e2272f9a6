-- Whether the oldest entry of the audit is to be forgotten. ?1 it is from before this time
SELECT count(*) FROM (SELECT at_ms FROM milepost_audit WHERE pos > 0 ORDER BY pos LIMIT 1) WHERE at_ms < ?1
