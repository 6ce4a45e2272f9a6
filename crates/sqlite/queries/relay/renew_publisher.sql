-- Renews the lease of a publisher. ?1 the publisher, ?2 end of the lease
UPDATE milepost_publisher SET lease_until_ms = ?2 WHERE id = ?1
