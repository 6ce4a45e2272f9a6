-- Renews the lease on a subscription. ?1 the publisher, ?2 end of the lease
UPDATE milepost_subscription SET lease_until_ms = ?2 WHERE owner = ?1
