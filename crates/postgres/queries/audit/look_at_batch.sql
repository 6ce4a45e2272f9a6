-- The state of batch $1.
select jsonb_build_object('state', b.state, 'stop', b.stop, 'generation', b.generation, 'version', v.version,
                          'waiting', b.waiting, 'due', b.due, 'active', b.active, 'failed', b.failed, 'aborted', b.aborted,
                          'succeeded', b.succeeded, 'skipped', b.skipped, 'canceled', b.canceled)::text
from milepost.batch b join milepost.dag_version v on v.id = b.version_id
where b.id = $1
