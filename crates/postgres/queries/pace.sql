-- Releases what the times of jobs and the rates of groups allow; answers in how many ms to look again, null: when something is noted.
select milepost.pace()
