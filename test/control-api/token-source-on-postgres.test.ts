import { createPostgresTokens } from '../../src/adapters/control-api/postgres-tokens.ts';
import { postgresTestEngine } from '../support/engines.ts';
import { describeWith } from '../support/requirements.ts';
import { BUCKET, describeTokenSource } from './token-source.contract.ts';

describeWith('postgres', 'tokens on a Postgres server', () =>
  describeTokenSource(async () => {
    const { engine, reset, close } = await postgresTestEngine();
    if (engine.kind !== 'postgres') throw new Error('not a Postgres');
    return { open: () => createPostgresTokens({ engine, bucket: BUCKET }), reset, close };
  }),
);
