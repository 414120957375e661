import { postgresTestEngine } from '../support/engines.ts';
import { describeWith } from '../support/requirements.ts';
import { describeJobQueue, queuesOn } from './job-queue.contract.ts';

describeWith('postgres', 'job queue on a Postgres server', () => describeJobQueue(queuesOn(postgresTestEngine)));
