/** A daemon whose readings are old counts what a new policy set would disconnect. */
import { Writable } from 'node:stream';
import { describe, expect, it, onTestFinished } from 'vitest';
import { policySet } from '../../src/domain/policy/policy-set.ts';
import type { FleetCompute } from '../../src/emulator/fleet.ts';
import type { EmulatorOptions } from '../../src/emulator/server.ts';
import { aSchedule } from '../support/builders.ts';
import { startSimulatedDaemon } from '../support/simulated/daemon.ts';
import { givenReadings } from '../support/simulated/given-readings.ts';

const MINUTE_MS = 60_000;
const START = Date.parse('2026-03-02T09:00:00Z');
const NOTHING = `version: 1
policies:
  - { name: none, kind: limits, select: { projects: ["*"], min_age: 1m }, size: { max: 8 } }
`;
/** Restarts whatever is awake. */
const LARGER = policySet(
  [
    aSchedule({
      name: 'larger',
      windows: [{ at: [{ kind: 'always' }], size: { minCu: 4, maxCu: 8 } }],
      otherwise: 'leave',
      disruption: { newlyDiscovered: 'act', raise: { when: 'any', atDeadline: 'apply' } },
    }),
  ],
  new Map(),
);

const ASLEEP: Partial<FleetCompute> = { state: 'idle', minCu: 1, maxCu: 2, suspendTimeoutSeconds: 300 };
const AWAKE: Partial<FleetCompute> = { ...ASLEEP, state: 'active', connections: 1 };
const NAMES = Array.from({ length: 20 }, (_, index) => `p-${index}`);

/** A daemon that reads 20 computes at its start, and none of them for two hours; those of the first so many names are awake. */
async function startOld(awake: number, platform: Partial<EmulatorOptions> = {}) {
  const lines: { event?: string; msg?: string }[] = [];
  const log = new Writable({
    write(chunk: Buffer, _encoding, done) {
      for (const line of chunk.toString().split('\n')) if (line !== '') lines.push(JSON.parse(line));
      done();
    },
  });
  const { source, give } = givenReadings();
  const daemon = await startSimulatedDaemon({
    ...{ fromMs: START, policies: NOTHING, platform, log },
    computes: Object.fromEntries(NAMES.map((name, index) => [name, index < awake ? AWAKE : ASLEEP])),
    rhythm: { rulesMs: MINUTE_MS, shortestRoundMs: MINUTE_MS },
    settings: (settings) => ({ ...settings, staging: 'always' }),
    source,
  });
  onTestFinished(() => daemon.close());
  const { clock, platform: emulated, rules } = daemon;
  await clock.runTo(START + 40 * MINUTE_MS);
  const reads = async () =>
    (await emulated.requests()).filter(({ method, path }) => method === 'GET' && path.endsWith('/endpoints')).length;
  return {
    ...{ ...daemon, lines },
    /** Clients come to these, or leave. */
    async clients(change: 'connect' | 'disconnect', names: readonly string[]) {
      for (const name of names) await emulated.control(`computes/ep-${name}/${change}`, { connections: 1 });
      await clock.runTo(clock.now() + 20 * MINUTE_MS);
    },
    /** Loads the larger set, and tells what came of it. */
    async load() {
      const { policies: _, becameCurrent: __, ...others } = rules.current;
      const before = await reads();
      const changes = { inPlace: [], replaced: ['policy.yaml'] };
      give({ ok: true, rules: { ...others, policies: LARGER }, warnings: [], needRestart: [], changes });
      await clock.runTo(clock.now() + MINUTE_MS);
      const staged = lines.filter(({ event }) => event === 'ebb.policies_staged').map(({ msg }) => msg);
      const written = (await emulated.writes()).length;
      return {
        staged,
        isCurrent: rules.current.policies.set.hash === LARGER.hash,
        written,
        read: (await reads()) - before,
      };
    },
  };
}

describe('a set that restarts what is awake', () => {
  it.each(['moves', 'stays'] as const)(
    'waits for approval if many computes woke since they were read, as the list shows (updated_at %s)',
    async (projectUpdatedAt) => {
      const daemon = await startOld(0, { projectUpdatedAt });
      await daemon.clients('connect', NAMES.slice(0, 12));
      expect(await daemon.load()).toEqual({
        staged: [expect.stringContaining('would disconnect 12 of 20 computes at once: it is staged')],
        ...{ isCurrent: false, written: 0, read: 12 },
      });
    },
  );

  it('does not wait if those that were awake when they were read sleep by now', async () => {
    const daemon = await startOld(12);
    await daemon.clients('disconnect', NAMES.slice(5, 12));
    expect(await daemon.load()).toMatchObject({ staged: [], isCurrent: true });
  });

  it('waits if it is not known whether they sleep: those that can not be read count as awake, which is said', async () => {
    const daemon = await startOld(0);
    await daemon.clients('connect', NAMES.slice(0, 12));
    const fault = { kind: 'status', status: 403, route: 'GET /projects/{project_id}/endpoints', count: 1 };
    await daemon.platform.control('faults', fault);
    expect(await daemon.load()).toMatchObject({
      staged: [
        expect.stringContaining('12 of 20 computes at once (1 of them unread, so perhaps asleep): it is staged'),
      ],
      isCurrent: false,
    });
  });
});
