-- How many dead letters of inboxes there are to forget. ?1 those given up before this time
SELECT count(*) FROM milepost_inbox_dead INDEXED BY milepost_inbox_dead_due WHERE dead_at_ms < ?1
