-- The maintenance that autovacuum would have run while jobs arrived and ended.
vacuum (analyze) milepost.job, milepost.job_key, milepost.live, milepost.ended, milepost.history
