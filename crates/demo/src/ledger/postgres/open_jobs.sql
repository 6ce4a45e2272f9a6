-- Jobs of queue $1 that have not ended; dead letters have.
select count(*) from milepost.live where queue = $1 and state <> 'failed'
