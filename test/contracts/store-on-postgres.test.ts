import { postgresTestEngine } from '../support/engines.ts';
import { describeWith } from '../support/requirements.ts';
import { describeStore } from './store.contract.ts';

describeWith('postgres', 'store on a Postgres server', () => describeStore(postgresTestEngine));
