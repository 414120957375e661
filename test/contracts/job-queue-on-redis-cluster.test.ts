import { redisClusterTestEngine } from '../support/engines.ts';
import { describeWith } from '../support/requirements.ts';
import { describeJobQueue, queuesOn } from './job-queue.contract.ts';

describeWith('redis-server', 'job queue on a Redis Cluster', () => describeJobQueue(queuesOn(redisClusterTestEngine)));
