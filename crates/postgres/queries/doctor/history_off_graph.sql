-- Entries of changes that no verb makes. $1 the check's parameters
select count(*) over () as count, h.job_id::text as what,
       'entry ' || h.pos || ' has verb ' || h.verb || ' from ' || coalesce(h.from_state::text, 'nothing') || ' to ' || h.to_state as detail
from milepost.history h
where (coalesce(h.from_state::text, ''), h.verb::text, h.to_state::text) not in (
    select coalesce(g.from_state, ''), g.verb, g.to_state
    from jsonb_to_recordset($1::jsonb -> 'graph') as g(from_state text, verb text, to_state text)
)
order by h.pos
limit 10
