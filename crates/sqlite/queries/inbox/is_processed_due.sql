-- Returns whether retention can delete ids of accepted events. ?1 those accepted before this time
SELECT EXISTS (SELECT 1 FROM milepost_processed_event INDEXED BY milepost_processed_event_due WHERE processed_at_ms < ?1)
