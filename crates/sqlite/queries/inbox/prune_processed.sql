-- Deletes ids of events that consumers accepted. ?1 before this time, ?2 how many
DELETE FROM milepost_processed_event WHERE (consumer, event_id) IN (
    SELECT consumer, event_id FROM milepost_processed_event INDEXED BY milepost_processed_event_due
    WHERE processed_at_ms < ?1 ORDER BY processed_at_ms LIMIT ?2
)
