import { describe } from 'vitest';
import { systemClock } from '../../src/adapters/clock/system-clock.ts';
import { createMemoryBroker } from '../support/simulated/group-queue.ts';
import { describeJobQueue } from './job-queue.contract.ts';

describe('job queue in memory', () =>
  describeJobQueue(async () => {
    const broker = createMemoryBroker(systemClock());
    return {
      open: (clock, onFailed) => broker.connect({ clock, onFailed }),
      reset: async () => broker.clear(),
      close: async () => {},
    };
  }));
