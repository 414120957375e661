import type { PostgresEngine } from '../../ports/engine.ts';
import type { DocumentStore } from '../../ports/store.ts';

export const DOCUMENT_TABLES = [
  `CREATE TABLE IF NOT EXISTS ebb_document (
     collection text NOT NULL, name text NOT NULL, body text NOT NULL, PRIMARY KEY (collection, name)
   )`,
] as const;

const ALL = 'SELECT name, body FROM ebb_document WHERE collection = $1';
const ONE = 'SELECT body FROM ebb_document WHERE collection = $1 AND name = $2';
const ADD = 'INSERT INTO ebb_document (collection, name, body) VALUES ($1, $2, $3) ON CONFLICT (collection, name)';
const PUT = `${ADD} DO UPDATE SET body = excluded.body`;
const ADD_NEW = `${ADD} DO NOTHING RETURNING name`;
const REPLACE = 'UPDATE ebb_document SET body = $3 WHERE collection = $1 AND name = $2 AND body = $4 RETURNING name';
const DELETE = 'DELETE FROM ebb_document WHERE collection = $1 AND name = ANY($2::text[])';

export function createPostgresDocuments({ pool }: PostgresEngine): DocumentStore {
  return {
    documents: async (collection) => {
      const { rows } = await pool.query<{ name: string; body: string }>(ALL, [collection]);
      return new Map(rows.map(({ name, body }) => [name, body]));
    },
    document: async (collection, name) => {
      const { rows } = await pool.query<{ body: string }>(ONE, [collection, name]);
      return rows[0]?.body;
    },
    putDocument: async (collection, name, text) => {
      await pool.query(PUT, [collection, name, text]);
    },
    replaceDocument: async (collection, name, { was, text }) => {
      const params = [collection, name, text];
      const { rows } = await (was === undefined ? pool.query(ADD_NEW, params) : pool.query(REPLACE, [...params, was]));
      return rows.length > 0;
    },
    deleteDocuments: async (collection, names) => {
      await pool.query(DELETE, [collection, [...names]]);
    },
  };
}
