-- Notes position $1 of the feed and $2 of the history as the end of a rollup, unless another process has rolled up since position $3 (null: the first).
insert into milepost.rollup_position as p (position, pos, at) values ($1, $2, now())
on conflict (one) do update set position = excluded.position, pos = excluded.pos, at = excluded.at where p.position = $3
