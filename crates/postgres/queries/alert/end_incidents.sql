-- Ends incidents that no server has observed for $1 ms. One that another server is renewing is not waited for.
update milepost.alert_incident set ended_at = now()
where id in (
    select id from milepost.alert_incident
    where ended_at is null and last_seen_at <= now() - $1::bigint * interval '1 millisecond'
    for update skip locked
)
