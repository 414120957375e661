import { describe } from 'vitest';
import { embeddedTestEngine } from '../support/engines.ts';
import { describeJobQueue } from './job-queue.contract.ts';

describe('job queue on the embedded engine', () => describeJobQueue(embeddedTestEngine));
