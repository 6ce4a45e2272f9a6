-- Makes version ?2 the latest of DAG ?1, at ?3.
INSERT INTO milepost_dag (name, latest, updated_at_ms) VALUES (?1, ?2, ?3)
ON CONFLICT (name) DO UPDATE SET latest = excluded.latest, updated_at_ms = excluded.updated_at_ms
WHERE latest <> excluded.latest
