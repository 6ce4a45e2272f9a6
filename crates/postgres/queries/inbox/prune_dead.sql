-- Deletes up to $2 dead letters of inboxes that are older than $1 ms. Those of aggregates that other transactions have
-- locked are kept. The oldest event that was kept as late, because a deleted one had its sequence, can follow then.
with due as materialized (
    select pos, consumer, aggregate_type, aggregate_id, reason from milepost.inbox_dead
    where dead_at < now() - $1::bigint * interval '1 millisecond'
    order by dead_at
    limit $2
),
held as materialized (
    select c.consumer, c.aggregate_type, c.aggregate_id from milepost.aggregate_checkpoint c
    where (c.consumer, c.aggregate_type, c.aggregate_id) in (select d.consumer, d.aggregate_type, d.aggregate_id from due d)
    for update skip locked
),
gone as (
    delete from milepost.inbox_dead d using due join held h using (consumer, aggregate_type, aggregate_id)
    where d.pos = due.pos
    returning d.consumer, d.aggregate_type, d.aggregate_id, d.aggregate_seq, d.reason
),
freed as (
    update milepost.inbox_dead d set reason = 'gap', why = 'the event that waited with its sequence was dropped'
    from (
        select min(l.pos) as pos from gone g join milepost.inbox_dead l using (consumer, aggregate_type, aggregate_id, aggregate_seq)
        where g.reason = 'gap' and l.reason = 'late' and l.event_id is not null and not exists (select from due where due.pos = l.pos)
        group by l.consumer, l.aggregate_type, l.aggregate_id, l.aggregate_seq
    ) n
    where d.pos = n.pos
    returning d.consumer, d.aggregate_type, d.aggregate_id
),
counted as (
    update milepost.aggregate_checkpoint c set dead = c.dead - g.events
    from (
        select consumer, aggregate_type, aggregate_id, sum(events) as events
        from (
            select consumer, aggregate_type, aggregate_id, 1 as events from gone where reason = 'gap'
            union all
            select consumer, aggregate_type, aggregate_id, -1 from freed
        ) changes
        group by 1, 2, 3
    ) g
    where c.consumer = g.consumer and c.aggregate_type = g.aggregate_type and c.aggregate_id = g.aggregate_id
)
select count(*) as rows from gone
