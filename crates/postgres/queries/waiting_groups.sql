-- Groups in which somebody waits although the slot is free: one index probe for each group that waits.
with recursive waiting as (
    (select group_key from milepost.live where group_key is not null and state = 'blocked' order by group_key limit 1)
    union all
    select (select l.group_key from milepost.live l
            where l.group_key > w.group_key and l.group_key is not null and l.state = 'blocked'
            order by l.group_key limit 1)
    from waiting w where w.group_key is not null
)
select w.group_key from waiting w
where w.group_key is not null and not exists (select from milepost.group_slot s where s.group_key = w.group_key)
limit 1000
