-- The rate of a group counts a start when a worker claims the job, not when the job gets its slot.
-- start_reserved: the job got its slot by a token of its group that is reserved until the job is claimed. reserved: the number of such jobs at the last check.
alter table milepost.live add column start_reserved boolean;
create index live_start_reserved on milepost.live (group_key) where start_reserved and ready_at is not null;
alter table milepost.group_bucket add column reserved int not null default 0;
-- When the reserved start happened.
alter table milepost.group_note add column started_at timestamptz;
