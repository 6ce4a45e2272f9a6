-- Whether the transaction may enqueue jobs of kinds that are bulk jobs: $1 on or off
select set_config('milepost.starts_bulk', $1, true)
