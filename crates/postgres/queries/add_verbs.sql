-- Adds the verbs $1.
select milepost.add_verbs($1)
