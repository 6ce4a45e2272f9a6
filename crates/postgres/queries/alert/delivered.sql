-- Records that the message of claim $2 to target $1 was delivered; the next one follows after $3 ms at the earliest.
update milepost.alert_target
set claimed_until = null, next_at = now() + $3::bigint * interval '1 millisecond', sent_at = now(),
    failing_since = null, failures = 0, last_error = null
where name = $1::text and claim = $2::bigint and claimed_until is not null
