-- Notes the time, if it is later than the noted one. $1 whose note
insert into milepost.turn as t (name, until) values ($1, now())
on conflict (name) do update set until = excluded.until where t.until < excluded.until
