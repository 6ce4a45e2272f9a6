-- Starts recording changes of jobs ('kind') or batches ('dag') if a subscription selects some, and stops it otherwise.
select milepost.switch_recording($1)
