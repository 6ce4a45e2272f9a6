-- Events that have started work, written in the transaction that created the work. See docs/adr/0042-events-start-work.md.

-- work: what the event started; work_id: the job or the batch; of a signal, its batch. Rows do not refer to the subscription: one that is
-- created again under the same name does not start the same work again. A row is deleted with its event.
create table milepost.event_work (
    event_id uuid not null,
    subscription text not null,
    work text not null check (work in ('job', 'batch', 'signal')),
    work_id uuid not null,
    started_at timestamptz not null default now(),
    primary key (event_id, subscription)
);

-- The event that started a job, for operators.
create index event_work_id on milepost.event_work (work_id);
