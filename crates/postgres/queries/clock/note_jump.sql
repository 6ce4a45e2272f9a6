-- Notes the time, if it is later than the noted one, and lets retention wait for $3 ms. $1 whose note, $2 the name of the time until which it waits
with waits as (
    insert into milepost.turn as t (name, until) values ($2, now() + $3 * interval '1 millisecond')
    on conflict (name) do update set until = excluded.until
)
insert into milepost.turn as t (name, until) values ($1, now())
on conflict (name) do update set until = excluded.until where t.until < excluded.until
