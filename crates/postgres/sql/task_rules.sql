-- Batches: lookup of tasks, and decision of tasks by the outcomes of their predecessors. Not public: settle.sql calls these.

-- Returns one task of a batch, looked up by both numbers, whatever plan the planner would prefer for one of them. OFFSET 0
-- keeps the lookup separate from the joins around it. dag_task_of does the same for a version.
create or replace function milepost.batch_task_of(of_batch uuid, number int) returns setof milepost.batch_task language sql stable as $$
    select * from milepost.batch_task t where t.batch_id = of_batch and t.task = number offset 0
$$;

create or replace function milepost.dag_task_of(of_version bigint, number int) returns setof milepost.dag_task language sql stable as $$
    select * from milepost.dag_task d where d.version_id = of_version and d.task = number offset 0
$$;

-- Returns up to `most` numbers from this position on; all numbers if the position is null.
create or replace function milepost.slice(numbers int[], place int, most int) returns int[] language sql immutable parallel safe as $$
    select case when place is null then numbers else numbers[place + 1 : least(place::bigint + most, cardinality(numbers))::int] end
$$;

-- Returns whether a task in this state has not ended for its successors.
create or replace function milepost.is_open(state milepost.task_state) returns boolean language sql immutable parallel safe as $$
    select state in ('waiting', 'due', 'active', 'aborted')
$$;

-- Returns the state of a task whose job is in this state.
create or replace function milepost.task_state_of(state milepost.job_state) returns milepost.task_state
language sql immutable parallel safe as $$
    select case state
        when 'failed' then 'failed'::milepost.task_state when 'aborted' then 'aborted' when 'succeeded' then 'succeeded'
        when 'canceled' then 'canceled' when 'skipped' then 'skipped' else 'active' end
$$;

-- Returns the state of a task whose child batch is in this state.
create or replace function milepost.task_state_of(state milepost.batch_state) returns milepost.task_state
language sql immutable parallel safe as $$
    select case state
        when 'running' then 'active'::milepost.task_state when 'done' then 'succeeded' when 'failed' then 'failed'
        when 'aborted' then 'aborted' else 'canceled' end
$$;

-- Returns what a task does, by the outcomes of its predecessors: run, skip or wait. Equals `decide` in the library; a test
-- compares the two for all counters of up to 4 predecessors.
create or replace function milepost.decide(
    rule milepost.task_rule, pre_cnt int, succeeded int, failed int, skipped int, canceled int
) returns text language sql immutable parallel safe as $$
    select case
        when rule = 'all_success' and skipped + canceled > 0 then 'skip'
        when rule = 'none_failed' and canceled > 0 then 'skip'
        when pre_cnt > 0 then 'wait'
        when rule in ('all_success', 'none_failed') and failed > 0 then 'wait'
        when rule in ('all_success', 'none_failed', 'all_done', 'always') then 'run'
        when rule = 'one_success' then case when succeeded > 0 then 'run' when failed > 0 then 'wait' else 'skip' end
        when failed > 0 then 'run'
        else 'skip'
    end
$$;

-- Returns the state of a batch with these numbers of tasks. Equals Counts::state in the library; a test compares the two.
create or replace function milepost.batch_state_of(
    stopped boolean, waiting int, due int, active int, failed int, aborted int, canceled int
) returns milepost.batch_state language sql immutable parallel safe as $$
    select (case
        when active > 0 or (due > 0 and not stopped) then 'running'
        when aborted > 0 or (stopped and waiting + due > 0) then 'aborted'
        when failed > 0 then 'failed'
        when waiting + due > 0 then 'running'
        when canceled > 0 then 'canceled'
        else 'done'
    end)::milepost.batch_state
$$;
