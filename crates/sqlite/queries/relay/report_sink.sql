-- Records whether a publisher's sink accepts events. ?1 the publisher, ?2 why it does not (NULL: it does), ?3 now
UPDATE milepost_publisher SET down_since_ms = CASE WHEN ?2 IS NOT NULL THEN coalesce(down_since_ms, ?3) END, down_why = ?2
WHERE id = ?1
