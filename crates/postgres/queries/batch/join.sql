-- Takes the shared locks for settling the batches of jobs $1, before their rows are locked.
select milepost.join_settling(array(
    select distinct j.batch_id from unnest($1::uuid[]) i(id) join milepost.job j on j.id = i.id where j.batch_id is not null))
