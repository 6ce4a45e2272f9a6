-- Deletes audit entries, oldest first. ?1 before this time, ?2 how many
DELETE FROM milepost_audit WHERE pos IN (
    SELECT pos FROM (SELECT pos, at_ms FROM milepost_audit WHERE pos > 0 ORDER BY pos LIMIT ?2) WHERE at_ms < ?1
)
