-- Sets whether the transaction may enqueue jobs whose kinds are bulk jobs: $1 on or off
select set_config('milepost.starts_bulk', $1, true)
