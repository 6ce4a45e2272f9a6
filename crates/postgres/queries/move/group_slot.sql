-- Imports holders of group slots.
insert into milepost.group_slot (group_key, slot, job_id)
select * from unnest($1::text[], $2::bigint[], $3::uuid[])
