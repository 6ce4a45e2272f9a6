-- Releases the subscriptions that a publisher owns. ?1 the publisher
UPDATE milepost_subscription SET owner = NULL, lease_until_ms = NULL, held_since_ms = NULL WHERE owner = ?1
