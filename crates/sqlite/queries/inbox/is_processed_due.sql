-- Whether there are ids of events to forget. ?1 those taken in before this time
SELECT EXISTS (SELECT 1 FROM milepost_processed_event INDEXED BY milepost_processed_event_due WHERE processed_at_ms < ?1)
