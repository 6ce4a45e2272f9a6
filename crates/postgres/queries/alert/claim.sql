-- Claims the next message to target $1 for $2 ms, and returns the number of the claim.
update milepost.alert_target set claim = claim + 1, claimed_until = clock_timestamp() + $2::bigint * interval '1 millisecond'
where name = $1::text
returning claim
