-- Groups in which a job waits although a slot is free: one index probe for each waiting group. Groups that the pacer will
-- check are left out.
with recursive waiting as (
    (select group_key from milepost.live
     where group_key is not null and due_at is not null and timed is null order by group_key limit 1)
    union all
    select (select l.group_key from milepost.live l
            where l.group_key > w.group_key and l.group_key is not null and l.due_at is not null and l.timed is null
            order by l.group_key limit 1)
    from waiting w where w.group_key is not null
)
select w.group_key from waiting w
left join lateral milepost.limit_of(w.group_key) l on true
where w.group_key is not null
  and case when l.name is not null and l.slots is null then true
      else (select count(*) from milepost.group_slot s where s.group_key = w.group_key) < coalesce(l.slots, 1) end
  and (l.per_second is null
       or not exists (select from milepost.group_bucket b where b.group_key = w.group_key and b.look_at is not null))
limit 1000
