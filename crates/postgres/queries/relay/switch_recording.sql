-- Has changes of jobs ('kind') or of batches ('dag') recorded if somebody wants some, else not.
select milepost.switch_recording($1)
