-- Makes the transaction count with a hash table: its groups are few, but the planner does not know how many rows there are, and would sort them on disk.
select set_config('enable_sort', 'off', true)
