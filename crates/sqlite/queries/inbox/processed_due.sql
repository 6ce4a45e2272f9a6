-- How many ids of events there are to forget. ?1 those taken in before this time
SELECT count(*) FROM milepost_processed_event INDEXED BY milepost_processed_event_due WHERE processed_at_ms < ?1
