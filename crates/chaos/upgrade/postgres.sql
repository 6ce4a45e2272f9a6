-- A migration of the next version, for scripts/upgrade: what migrations usually do, in a form that allows programs of the version before.
alter table milepost.live add column next_note text;
alter table milepost.job add column next_note text not null default '';
alter table milepost.history add column next_note text;
alter table milepost.event add column next_note text;
alter table milepost.batch_task add column next_note text;
create table milepost.next_table (id bigint generated always as identity primary key, note text not null);
create index next_worker_name on milepost.worker (name);
