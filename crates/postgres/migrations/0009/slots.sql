-- The maximum number of jobs that a worker runs at the same time; null: it did not say.
alter table milepost.worker add column slots int check (slots > 0);
