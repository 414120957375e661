import { describeStore } from '../contracts/store.contract.ts';
import { redisClusterTestEngine } from '../support/engines.ts';
import { describeWith } from '../support/requirements.ts';

describeWith('redis-server', 'store on a Redis Cluster', () => describeStore(redisClusterTestEngine));
