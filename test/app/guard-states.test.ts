/** Commands know what guards said last: from the store, and from the daemon that has it open. */
import { describe, expect, it } from 'vitest';
import { ANSWERS, readGuardStates, WATCHES } from '../../src/app/guards/stored-states.ts';
import { createGuardVerdicts, type GuardRoundsDeps, startGuardRounds } from '../../src/app/guards/verdicts.ts';
import { describeWatch, verdictAt } from '../../src/domain/guards/state.ts';
import type { Verdict } from '../../src/domain/guards/verdict.ts';
import { aGuard, at } from '../support/builders.ts';
import { memoryDocumentStore } from '../support/memory-documents.ts';

const SIX = at('2026-03-02T18:00:00Z');
const HEALTHY: Verdict = { state: 'healthy', value: 0.1, limit: 0.4, message: '0.1, bad above 0.4' };
const guard = aGuard();

async function stored(verdict: Verdict = HEALTHY) {
  const verdicts = createGuardVerdicts();
  verdicts.set(guard, { atMs: SIX, verdicts: new Map([['ep-one', verdict]]), sinceLowered: new Map() });
  const store = memoryDocumentStore();
  await ANSWERS.keep(store, Object.fromEntries(verdicts.stored()));
  return store;
}

describe('what a guard said last', () => {
  it('counts for three rounds, and is told with its age', async () => {
    const states = (await readGuardStates(await stored())).get('ep-one');
    expect(verdictAt(states, guard, SIX + 90_000)).toEqual({ ...HEALTHY, atMs: SIX });
    expect(verdictAt(states, guard, SIX + 91_000)).toEqual({
      ...{ state: 'unknown', atMs: SIX },
      message: 'not asked since 2026-03-02T18:00:00Z, when it was healthy: 0.1, bad above 0.4',
    });
  });

  it('says nothing of another compute, or of a guard that asks something else', async () => {
    const states = await readGuardStates(await stored());
    expect(verdictAt(states.get('ep-two'), guard, SIX)).toBeUndefined();
    expect(verdictAt(states.get('ep-one'), aGuard({ query: 'p99' }), SIX)).toBeUndefined();
  });

  it('has no number where it was infinite', async () => {
    const infinite: Verdict = {
      state: 'bad',
      value: Number.POSITIVE_INFINITY,
      limit: 0.4,
      message: '+Inf, bad above 0.4',
    };
    const states = (await readGuardStates(await stored(infinite))).get('ep-one');
    expect(verdictAt(states, guard, SIX)).toEqual({ state: 'bad', limit: 0.4, message: infinite.message, atMs: SIX });
  });
});

it('watches are told until they are over', async () => {
  const store = await stored();
  const watch = { loweredAtMs: SIX, sampledMs: 240_000, blindMs: 0 };
  const bad = { sinceMs: SIX + 120_000, lastMs: SIX + 240_000 };
  const computes = {
    'ep-one': { lastMs: SIX, watch, bad },
    'ep-two': { lastMs: SIX, watch: { ...watch, isOver: true } },
  };
  await WATCHES.put(store, guard.name, { terms: 'any', memory: { computes: computes as never, harms: [] } });
  const states = await readGuardStates(store);
  const { watch: told } = states.get('ep-one')?.[0] ?? {};
  expect(told).toEqual({ ...watch, badSinceMs: SIX + 120_000 });
  expect(told && describeWatch(told, 1_800_000)).toBe(
    'since 2026-03-02T18:00:00Z, 4 min of 30 min sampled, bad since 2026-03-02T18:02:00Z',
  );
  expect(states.get('ep-two')).toBeUndefined();
});

const SINCE = { latency: { key: 'since', atMs: SIX + 1, verdicts: {} } };

it.each([
  ['though it lost its lease, too', undefined, 'ep-one'],
  ['unless the next leader has stored its own since', SINCE, undefined],
])('the leader stores its verdicts again after the store has lost them, %s', async (_, since, known) => {
  const store = memoryDocumentStore();
  if (since) await ANSWERS.keep(store, since);
  const guards = createGuardVerdicts();
  guards.set(guard, { atMs: SIX, verdicts: new Map([['ep-one', HEALTHY]]), sinceLowered: new Map() });
  const writeBacks: (() => Promise<void>)[] = [];
  startGuardRounds({
    ...{ store, guards, series: {}, telemetry: {}, rhythm: {} },
    ...{ leaderLease: { isHeld: () => false }, clock: { every: () => ({ close: async () => {} }) } },
    runInBackground: async (_task: string, work: () => Promise<void>) => work(),
    storeWatch: { onLoss: (writeBack: () => Promise<void>) => writeBacks.push(writeBack) },
  } as unknown as GuardRoundsDeps);
  for (const writeBack of writeBacks) await writeBack();
  expect([...(await readGuardStates(store)).keys()]).toEqual(known ? [known] : []);
});
