-- Takes the shared locks for settling the batches of the jobs that worker $1 holds, before their rows are locked.
select milepost.join_settling(array(
    select distinct j.batch_id from milepost.live l join milepost.job j on j.id = l.id
    where l.worker_id = $1 and j.batch_id is not null))
