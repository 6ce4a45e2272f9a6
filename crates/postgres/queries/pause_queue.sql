-- Pauses queue $1 ($2 true) or lets it go on. Answers a row if that changed anything.
insert into milepost.queue as q (name, paused_at)
values ($1, case when $2 then now() end)
on conflict (name) do update set paused_at = excluded.paused_at
where (q.paused_at is null) <> (excluded.paused_at is null)
returning name, (select milepost.wake())::text
