import { redisClusterTestEngine } from '../support/engines.ts';
import { describeWith } from '../support/requirements.ts';
import { describeStore } from './store.contract.ts';

describeWith('redis-server', 'store on a Redis Cluster', () => describeStore(redisClusterTestEngine));
