-- Returns dead letters of inboxes that retention can delete. ?1 those older than this time, ?2 how many
SELECT pos FROM milepost_inbox_dead INDEXED BY milepost_inbox_dead_due WHERE dead_at_ms < ?1 ORDER BY dead_at_ms LIMIT ?2
