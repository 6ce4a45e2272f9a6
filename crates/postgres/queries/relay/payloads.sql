-- Payloads of events in the order of the arrays, $1 their slots and $2 their positions, until they have $3 bytes as text. One after the other, because
-- the size of a compressed payload is known only when it has been read.
with recursive payload as (
    select 0 as n, null::smallint as slot, null::bigint as pos, null::text as payload, 0::bigint as bytes
    union all
    select p.n + 1, e.slot, e.pos, e.payload, p.bytes + octet_length(e.payload)
    from payload p
    cross join lateral (
        select slot, pos, payload::text as payload from milepost.event
        where slot = ($1::smallint[])[p.n + 1] and pos = ($2::bigint[])[p.n + 1]
        offset 0
    ) e
    where p.n < cardinality($2) and p.bytes < $3
)
select slot, pos, payload from payload where n > 0 order by n
