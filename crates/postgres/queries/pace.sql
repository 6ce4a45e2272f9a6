-- Releases the jobs that are due and that the rates of groups allow. Returns the time in ms after which to call it again;
-- null: when a change is noted.
select milepost.pace()
