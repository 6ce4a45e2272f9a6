-- Returns the state of batch ?1.
SELECT json_object('state', b.state, 'stop', b.stop, 'generation', b.generation, 'version', v.version,
                   'waiting', b.waiting, 'due', b.due, 'active', b.active, 'failed', b.failed, 'aborted', b.aborted,
                   'succeeded', b.succeeded, 'skipped', b.skipped, 'canceled', b.canceled)
FROM milepost_batch b JOIN milepost_dag_version v ON v.id = b.version_id
WHERE b.id = ?1
