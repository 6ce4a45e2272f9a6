-- Counts the dead letters of inboxes that retention can delete. ?1 those older than this time
SELECT count(*) FROM milepost_inbox_dead INDEXED BY milepost_inbox_dead_due WHERE dead_at_ms < ?1
