-- The last checkpoint of job $1.
select checkpoint::text from milepost.progress where job_id = $1
