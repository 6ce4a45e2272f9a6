-- A session that has not expired, with its token or person. Its use ($6) is recorded at most once a minute, or four times in the idle
-- limit if that is shorter. $1 id, then in ms: $2 idle limit, $3 maximum age, $4 age of an id after which it is changed, $5
-- how long the former id is accepted
with found as (
    select * from milepost.console_session
    where (id = $1::bytea or former_id = $1 and rotated_at > now() - $5::bigint * interval '1 millisecond')
      and seen_at > now() - $2::bigint * interval '1 millisecond' and began_at > now() - $3::bigint * interval '1 millisecond'
),
seen as (
    update milepost.console_session s set seen_at = now() from found f
    where $6::boolean and s.id = f.id and f.seen_at < now() - least($2::bigint / 4, 60000) * interval '1 millisecond'
)
select t.*, f.id as session_id, f.person, f.role as person_role, f.granted_by, f.csrf,
       f.id = $1 and f.rotated_at <= now() - $4::bigint * interval '1 millisecond' as rotate, now() as at
from found f left join milepost.access_token t on t.prefix = f.token
