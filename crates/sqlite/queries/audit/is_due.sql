-- Returns whether retention can delete the oldest audit entry. ?1 it is from before this time
SELECT count(*) FROM (SELECT at_ms FROM milepost_audit WHERE pos > 0 ORDER BY pos LIMIT 1) WHERE at_ms < ?1
