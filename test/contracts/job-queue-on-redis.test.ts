import { redisTestEngine } from '../support/engines.ts';
import { describeWith } from '../support/requirements.ts';
import { describeJobQueue, queuesOn } from './job-queue.contract.ts';

describeWith('redis-server', 'job queue on Redis', () => describeJobQueue(queuesOn(redisTestEngine)));
