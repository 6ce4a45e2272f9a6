-- Emits events. $1: a list of objects, as JSON text, each with the members of an event. The caller has checked the payloads, whose text is kept.
select coalesce(json_agg(json_build_object('sequence', made.aggregate_seq, 'duplicate', made.duplicate) order by made.ord), '[]')::text as answer
from (
    select coalesce(array_agg(e.event ->> 'aggregate_type' order by e.ord), '{}') as aggregate_types,
           coalesce(array_agg(e.event ->> 'aggregate_id' order by e.ord), '{}') as aggregate_ids,
           coalesce(array_agg(e.event ->> 'event_type' order by e.ord), '{}') as event_types,
           coalesce(array_agg(e.event -> 'payload' order by e.ord), '{}') as payloads,
           coalesce(array_agg((e.event ->> 'event_id')::uuid order by e.ord), '{}') as event_ids,
           coalesce(array_agg((e.event ->> 'aggregate_seq')::bigint order by e.ord), '{}') as aggregate_seqs,
           coalesce(array_agg((e.event ->> 'headers')::jsonb order by e.ord), '{}') as headers,
           coalesce(array_agg((e.event ->> 'gap_allowed')::boolean order by e.ord), '{}') as gaps_allowed
    from json_array_elements($1::text::json) with ordinality e(event, ord)
) a
cross join lateral milepost.emit_many(
    a.aggregate_types, a.aggregate_ids, a.event_types, a.payloads, a.event_ids, a.aggregate_seqs, a.headers, a.gaps_allowed, null
) with ordinality made(event_id, aggregate_seq, duplicate, ord)
