-- Counts the ids of accepted events that retention can delete. ?1 those accepted before this time
SELECT count(*) FROM milepost_processed_event INDEXED BY milepost_processed_event_due WHERE processed_at_ms < ?1
