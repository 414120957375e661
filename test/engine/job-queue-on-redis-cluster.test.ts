import { describeJobQueue, queuesOn } from '../contracts/job-queue.contract.ts';
import { redisClusterTestEngine } from '../support/engines.ts';
import { describeWith } from '../support/requirements.ts';

describeWith('redis-server', 'job queue on a Redis Cluster', () => describeJobQueue(queuesOn(redisClusterTestEngine)));
