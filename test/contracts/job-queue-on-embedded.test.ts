import { describe } from 'vitest';
import { embeddedTestEngine } from '../support/engines.ts';
import { describeJobQueue, queuesOn } from './job-queue.contract.ts';

describe('job queue on the embedded engine', () => describeJobQueue(queuesOn(embeddedTestEngine)));
