-- Whether there are dead letters of inboxes to forget. ?1 those given up before this time
SELECT EXISTS (SELECT 1 FROM milepost_inbox_dead INDEXED BY milepost_inbox_dead_due WHERE dead_at_ms < ?1)
