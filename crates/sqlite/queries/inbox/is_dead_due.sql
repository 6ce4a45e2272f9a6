-- Returns whether retention can delete dead letters of inboxes. ?1 those older than this time
SELECT EXISTS (SELECT 1 FROM milepost_inbox_dead INDEXED BY milepost_inbox_dead_due WHERE dead_at_ms < ?1)
