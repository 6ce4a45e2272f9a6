-- Rates: buckets of tokens, and the gates of kinds that have one. Not public: the library and the functions of
-- groups.sql call these.

-- What so many starts take to come back, rounded up.
create or replace function milepost.cost(starts bigint, per_second float8) returns interval language sql immutable as $$
    select make_interval(secs => ceil(starts * 1e6::float8 / per_second) / 1e6::float8)
$$;

-- How many tokens a bucket has that is full at full_at; below nothing while it is in debt.
create or replace function milepost.tokens(full_at timestamptz, per_second float8, burst int) returns float8
language sql stable as $$
    select burst - greatest(0, extract(epoch from full_at - now())::float8) * per_second
$$;

-- When a bucket has a portion to give out.
create or replace function milepost.opens_at(full_at timestamptz, per_second float8, burst int, portion int)
returns timestamptz language sql immutable as $$
    select full_at - make_interval(secs => (burst - portion) / per_second)
$$;

-- The kinds among these that have a rate and tokens, whose buckets this transaction could lock: the first of the
-- lanes (aligned arrays, as in a claim) in which each has something ready, and how many of it may start.
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

-- Takes from the bucket of a kind what so many starts cost.
create or replace function milepost.debit(limited text, starts bigint) returns void language sql as $$
    update milepost.kind_limit k
    set full_at = greatest(k.full_at, now()) + milepost.cost(starts, k.per_second)
    where k.kind = limited and starts > 0
$$;

