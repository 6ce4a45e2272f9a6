-- Shortens leases of publishers that were renewed before the clock was set back: they may be dead. ?1 now, ?2 by how many milliseconds
UPDATE milepost_publisher SET lease_until_ms = max(?1, lease_until_ms - ?2) WHERE lease_until_ms > ?1
