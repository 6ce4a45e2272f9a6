-- What a server would have done by itself while jobs came and went.
vacuum (analyze) milepost.job, milepost.job_key, milepost.live, milepost.ended, milepost.history
