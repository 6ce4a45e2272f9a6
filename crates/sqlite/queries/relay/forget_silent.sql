-- Deletes publishers whose lease has expired. ?1 subscription, ?2 now
DELETE FROM milepost_publisher WHERE subscription = ?1 AND lease_until_ms < ?2
