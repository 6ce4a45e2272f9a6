-- A session that is not over, with its token; that it was used ($6) is written once a minute, or four times while it would last. $1 id, then ms: $2 after which an unused one is over,
-- $3 after which each is, $4 after which its id is changed, $5 for which the id before counts
with found as (
    select * from milepost.console_session
    where (id = $1::bytea or former_id = $1 and rotated_at > now() - $5::bigint * interval '1 millisecond')
      and seen_at > now() - $2::bigint * interval '1 millisecond' and began_at > now() - $3::bigint * interval '1 millisecond'
),
seen as (
    update milepost.console_session s set seen_at = now() from found f
    where $6::boolean and s.id = f.id and f.seen_at < now() - least($2::bigint / 4, 60000) * interval '1 millisecond'
)
select t.*, f.id as session_id, f.csrf, f.id = $1 and f.rotated_at <= now() - $4::bigint * interval '1 millisecond' as rotate, now() as at
from found f join milepost.access_token t on t.prefix = f.token
