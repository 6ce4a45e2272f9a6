-- Deletes up to $2 incidents that ended more than $1 ms ago, and targets that no server has had for as long.
with old as (
    select id from milepost.alert_incident
    where ended_at < now() - $1::bigint * interval '1 millisecond'
    order by ended_at limit $2::bigint
    for update skip locked
),
unused as (
    delete from milepost.alert_target where seen_at < now() - $1::bigint * interval '1 millisecond'
)
delete from milepost.alert_incident i using old where i.id = old.id
