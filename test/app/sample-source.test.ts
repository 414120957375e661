import { describe, expect, it } from 'vitest';
import { readSamples, samplesToJson } from '../../src/adapters/store/history-json.ts';
import { createSamples } from '../../src/app/connections/samples.ts';
import { countedComputes, type SampleSourceDeps, sampleSource } from '../../src/app/connections/source.ts';
import { MAX_SAMPLES } from '../../src/domain/connections/connection-samples.ts';
import { viewConnections } from '../../src/domain/connections/connections.ts';
import type { ConnectionSource } from '../../src/domain/policy/policy.ts';
import type { ConnectionSample } from '../../src/ports/store.ts';
import { aCompute, aSchedule, at, currentRules } from '../support/builders.ts';

const MINUTE_MS = 60_000;
const START = at('2026-03-02T00:00:00Z');

/** A daemon that counts one compute, asking its source every ten minutes; samples are stored as a store has them. */
function aDaemon() {
  const compute = aCompute();
  const source = { from: 'prometheus', name: 'counts', everyMs: 10 * MINUTE_MS } as ConnectionSource;
  const stored = { json: '' };
  const now = { ms: START, connections: 0 };
  const samples = createSamples();
  const clock = { now: () => now.ms };
  const rules = currentRules();
  rules.current.policies.set.sources = new Map([[source.name, source]]);
  const deps = {
    ...{ clock, samples, rules, fleet: { ownEvaluation: () => undefined, latestEvaluation: () => undefined } },
    store: {
      samples: async () => readSamples(stored.json),
      async putSamples(_id: string, kept: readonly ConnectionSample[]) {
        stored.json = samplesToJson(kept, MAX_SAMPLES);
      },
    },
  } as unknown as SampleSourceDeps;
  const windowMs = 12 * 60 * MINUTE_MS;
  const count = async () => new Map([[compute.computeId, { ok: true, value: { connections: now.connections } }]]);
  const counters = { of: () => ({ count }) } as never;
  return {
    stored,
    async count(connections: number, atMs: number) {
      Object.assign(now, { connections, ms: atMs });
      const options = { counters, isCounting: true, signal: new AbortController().signal };
      await sampleSource(deps, { source, computes: [compute], windowMs }, options);
      const history = samples.historyOf(compute.computeId).get(source.name);
      return viewConnections(history, compute, { instantMs: atMs, windowMs });
    },
  };
}

it('computes whose policies leave out when to lower are counted if the settings wait for a quiet moment', () => {
  const compute = aCompute();
  const source = { from: 'prometheus', name: 'counts', query: 'q', everyMs: MINUTE_MS } as ConnectionSource;
  const rules = currentRules(aSchedule());
  rules.current.policies.set.sources = new Map([[source.name, source]]);
  const deps = { rules, clock: { now: () => START }, fleet: { cachedProjects: () => [{ computes: [compute] }] } };
  const counted = () => countedComputes(deps as unknown as SampleSourceDeps).map(({ computes }) => computes);
  expect(counted()).toEqual([]);
  rules.current.disruption = { lower: { when: 'quiet', atDeadline: 'apply' } };
  expect(counted()).toEqual([[compute]]);
});

describe('a source that is asked every ten minutes', () => {
  it('is remembered for a window of twelve hours, with its peak, in as many samples as a store keeps', async () => {
    const daemon = aDaemon();
    const views = [];
    for (let n = 0; n <= 90; n += 1) views.push(await daemon.count(n === 10 ? 99 : 1, START + n * 10 * MINUTE_MS));
    // Twelve hours are 72 counts: the peak is in the window until the 82nd, and the whole window is known from then on.
    expect(views[80]).toMatchObject({ now: 1, peak: 99, isWholeWindowKnown: true });
    expect(views[90]).toMatchObject({ now: 1, peak: 1, isWholeWindowKnown: true });
  });

  it('is not taken for older than what a daemon stored whose clock was ahead', async () => {
    const daemon = aDaemon();
    const ahead = { source: 'counts', atMs: START + 24 * 60 * MINUTE_MS, connections: 99 };
    daemon.stored.json = samplesToJson([{ ...ahead, atMs: START + 1000, connections: 5 }, ahead], MAX_SAMPLES);
    expect(await daemon.count(7, START)).toMatchObject({ now: 7 });
    expect(readSamples(daemon.stored.json).map(({ connections }) => connections)).toEqual([7, 5]);
  });
});
