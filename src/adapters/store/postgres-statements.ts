/** The caller's lease, locked against whoever would take it over while the same statement writes. */
const HELD = `held AS (
  SELECT name FROM ebb_lease
   WHERE name = $1 AND holder = $2 AND token = $3 AND expires_at > clock_timestamp() FOR UPDATE
)`;

const AFTER = (parameter: string) => `clock_timestamp() + ${parameter}::double precision * interval '1 millisecond'`;

/**
 * Each statement is one atomic step. Invariant: whoever changes a record proves in the same statement that the lease is still
 * the caller's. Those that may be refused return a row if they were not.
 */
export const STATEMENTS = {
  storeId: `
    INSERT INTO ebb_meta (key, value) VALUES ('store-id', $1)
    ON CONFLICT (key) DO UPDATE SET value = ebb_meta.value RETURNING value`,
  time: 'SELECT floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint AS ms',
  acquireLease: `
    INSERT INTO ebb_lease (name, holder, token, expires_at)
    VALUES ($1, $2, nextval('ebb_lease_token'), ${AFTER('$3')})
    ON CONFLICT (name) DO UPDATE
      SET holder = excluded.holder, token = nextval('ebb_lease_token'), expires_at = excluded.expires_at
      WHERE ebb_lease.expires_at <= clock_timestamp() OR ebb_lease.expires_at > ${AFTER('$4')}
    RETURNING token`,
  renewLease: `
    UPDATE ebb_lease SET expires_at = ${AFTER('$4')}
    WHERE name = $1 AND holder = $2 AND token = $3 AND expires_at > clock_timestamp() RETURNING name`,
  releaseLease: 'DELETE FROM ebb_lease WHERE name = $1 AND holder = $2 AND token = $3',
  records: 'SELECT compute_id, body FROM ebb_record WHERE project_id = $1',
  putRecord: `
    WITH ${HELD}, prolonged AS (
      UPDATE ebb_lease SET expires_at = ${AFTER('$7')} FROM held WHERE ebb_lease.name = held.name AND $7::double precision IS NOT NULL
    )
    INSERT INTO ebb_record (project_id, compute_id, body) SELECT $4, $5, $6 FROM held
    ON CONFLICT (project_id, compute_id) DO UPDATE SET body = excluded.body RETURNING compute_id`,
  deleteRecord: `
    WITH ${HELD}, gone AS (
      DELETE FROM ebb_record USING held WHERE project_id = $4 AND compute_id = $5 RETURNING compute_id
    ), without_samples AS (
      DELETE FROM ebb_samples USING held WHERE compute_id = $5
    )
    SELECT name FROM held`,
  projectIds: 'SELECT DISTINCT project_id FROM ebb_record ORDER BY project_id',
} as const;
