import { expect, it } from 'vitest';
import { createFleet } from '../../src/app/fleet/fleet.ts';
import { requestReading, usableCachedProject } from '../../src/app/reconcile/missing.ts';
import type { ComputeRecord } from '../../src/domain/records/compute-record.ts';
import { aCompute, aRecord } from '../support/builders.ts';

const START = 1_790_000_000_000;

/** A daemon that has just read a project of one compute, whose record says that another daemon sent the last change. */
function aDaemon() {
  const time = { ms: START };
  const clock = { now: () => time.ms, monotonicMs: () => time.ms };
  const fleet = createFleet({ clock } as never);
  const project = { account: 'a', projectId: 'p', name: 'p', regionId: 'r', updatedAtMs: 0 };
  const records = (lastSentAtMs: number) =>
    new Map<string, ComputeRecord>([['ep-one', { ...aRecord(), lastSentAtMs }]]);
  const read = () => {
    const now = { readAtMs: time.ms, readAtMonotonicMs: time.ms };
    return fleet.see({ project, computes: [aCompute()], unreadable: [], ...now });
  };
  return { time, read, records, deps: { fleet, clock } };
}

it('what was read before another daemon sent a change is not believed, however its clock stands', () => {
  const { time, read, records, deps } = aDaemon();
  read();
  time.ms += 1_000;
  expect(usableCachedProject(deps, { records: records(START - 60_000) }, 'p', undefined)).toBeUndefined();
});

it('what was read after the records were seen is believed as long as nobody has sent anything since', () => {
  const { time, read, records, deps } = aDaemon();
  const readBaseline = requestReading(deps, { records: records(START - 60_000) }, 'p');
  const cached = read();
  time.ms += 1_000;
  expect(usableCachedProject(deps, { records: records(START - 60_000) }, 'p', readBaseline)).toBe(cached);
  expect(usableCachedProject(deps, { records: records(START + 500) }, 'p', readBaseline)).toBeUndefined();
  time.ms += 60_000;
  expect(usableCachedProject(deps, { records: records(START - 60_000) }, 'p', readBaseline)).toBeUndefined();
});
