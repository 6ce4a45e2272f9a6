-- Shortens leases of publishers that were renewed before the clock was set back by $1 ms: they may be dead.
update milepost.publisher set lease_until = greatest(clock_timestamp(), lease_until - $1 * interval '1 millisecond') where lease_until > clock_timestamp()
