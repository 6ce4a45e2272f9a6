-- Takes a subscription over. ?1 its name, ?2 the publisher, ?3 now, ?4 end of the lease
UPDATE milepost_subscription SET owner = ?2, token = token + 1, held_since_ms = ?3, lease_until_ms = ?4 WHERE name = ?1
