-- Whether queue $1 is paused, and since when.
select jsonb_build_object('paused_at', (select paused_at from milepost.queue where name = $1))::text
