-- Rates: token buckets, and their use by claims. Not public: the library and the functions of groups.sql call these.

-- Returns the time in which the tokens of this number of starts are refilled, rounded up.
create or replace function milepost.cost(starts bigint, per_second float8) returns interval language sql immutable as $$
    select make_interval(secs => ceil(starts * 1e6::float8 / per_second) / 1e6::float8)
$$;

-- Returns the number of tokens in a bucket that is full at full_at; negative while it is in debt. Another program can have set an infinite time:
-- such a bucket is full.
create or replace function milepost.tokens(full_at timestamptz, per_second float8, burst int) returns float8
language sql stable as $$
    select burst - case when isfinite(full_at) then greatest(0, extract(epoch from full_at - now())::float8) * per_second else 0 end
$$;

-- Returns when a bucket contains a portion of tokens; null for an infinite time.
create or replace function milepost.opens_at(full_at timestamptz, per_second float8, burst int, portion int)
returns timestamptz language sql immutable as $$
    select case when isfinite(full_at) then full_at - make_interval(secs => (burst - portion) / per_second) end
$$;

-- Returns when a bucket is full after this number of starts, some of which happened at these times, in order; the others happen now.
create or replace function milepost.debited(full_at timestamptz, starts int, per_second float8, started_at timestamptz[])
returns timestamptz language sql stable as $$
    -- After each start, the tokens of it and of all later ones have to be refilled.
    select case when starts <= 0 then full_at else greatest(
        full_at + milepost.cost(starts, per_second),
        case when starts > known then now() + milepost.cost(starts - known, per_second) end,
        (select max(s.at + milepost.cost(starts - s.ord + 1, per_second))
         from unnest(started_at) with ordinality s(at, ord) where s.ord <= known)) end
    from (select least(starts, cardinality(started_at)) as known) k
$$;

-- Returns those of these kinds that have a rate and enough tokens and whose buckets this transaction could lock: the first
-- of the lanes (parallel arrays, as in a claim) with a ready job of the kind, and the number of jobs that may start.
create or replace function milepost.open_gates(
    queues text[], kinds text[], priorities smallint[], floors timestamptz[]
) returns table (kind text, lane bigint, starts bigint) language plpgsql
set enable_seqscan = off set enable_hashjoin = off set enable_mergejoin = off as $$
#variable_conflict use_column
begin
    return query
    select k.kind, first.ord, floor(milepost.tokens(k.full_at, k.per_second, k.burst))::bigint
    from milepost.kind_limit k
    cross join lateral (
        select l.ord
        from unnest(queues, kinds, priorities, floors) with ordinality as l(queue, kind, priority, floor, ord)
        cross join lateral (
            select from milepost.live
            where queue = l.queue and kind = l.kind and priority = l.priority
              and ready_at is not null and ready_at >= coalesce(l.floor, '-infinity') and ready_at <= now()
            limit 1
        ) found
        where l.kind = k.kind
          and not exists (select from milepost.queue q where q.name = l.queue and q.paused_at is not null)
        limit 1
    ) first
    where k.kind = any (kinds) and milepost.tokens(k.full_at, k.per_second, k.burst) >= k.portion
    for update of k skip locked;
end
$$;

-- Debits the bucket of a kind for this number of starts.
create or replace function milepost.debit(limited text, starts bigint) returns void language sql as $$
    update milepost.kind_limit k
    set full_at = greatest(case when isfinite(k.full_at) then k.full_at end, now()) + milepost.cost(starts, k.per_second)
    where k.kind = limited and starts > 0
$$;

