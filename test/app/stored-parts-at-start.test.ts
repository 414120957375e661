import { expect, it, onTestFinished } from 'vitest';
import { DECISION_VERSION } from '../../src/domain/evaluate/decision-version.ts';
import type { PolicySet } from '../../src/domain/policy/policy.ts';
import { policySet } from '../../src/domain/policy/policy-set.ts';
import { unloadedPart } from '../../src/domain/policy/team-parts.ts';
import { herdPosition, type ReadyWaves } from '../../src/domain/policy/waves.ts';
import { aCompute } from '../support/builders.ts';
import { createSteppedClock } from '../support/simulated/clock.ts';
import { startSimulatedDaemon } from '../support/simulated/daemon.ts';
import { createMemoryStore } from '../support/simulated/store.ts';

const EIGHT = Date.parse('2026-03-02T08:00:00Z');
const WEB = { name: 'web', projects: ['*'] };
const POLICIES = `version: 1
policies:
  - name: office-hours
    kind: schedule
    select: { projects: ["*"], min_age: 1m }
    disruption: { raise: { when: any }, newly_discovered: act }
    windows: [{ at: Mon-Fri 08:00-18:00 UTC, size: 1-2, ready: true }]
    otherwise: { size: 0.25 }
`;

it('a daemon that takes the policies of a team from the store knows their waves before it writes', async () => {
  const fromMs = EIGHT - 2 * 60_000;
  const store = createMemoryStore(createSteppedClock(fromMs, () => false));
  const put = (collection: string, name: string, value: unknown) =>
    store.putDocument(collection, name, JSON.stringify({ version: 1, value }));
  const last = herdPosition(0, aCompute({ computeId: 'ep-shop' }));
  const waves: ReadyWaves[] = [
    { account: 'default', opensAtMs: EIGHT, setHash: '', waves: [{ leadMs: 15_000, computes: 1, last }] },
  ];
  await put('ready-waves', 'all', waves);
  const daemon = await startSimulatedDaemon({
    fromMs,
    policies: POLICIES,
    computes: { shop: { state: 'active', minCu: 0.25, maxCu: 0.25, suspendTimeoutSeconds: -1 } },
    withStore: () => store,
    settings: (settings) => ({ ...settings, teams: [{ ...WEB, policies: [] }] }),
    withSet({ policies, sources }: PolicySet) {
      const { hash, policies: ofWeb } = policySet(
        policies.map((policy) => ({ ...policy, team: WEB.name })),
        sources,
        WEB.name,
      );
      void put('team-policies', WEB.name, {
        ...{ hash, decisionVersion: DECISION_VERSION, policies: ofWeb, sources: [] },
      });
      return unloadedPart(WEB);
    },
  });
  onTestFinished(() => daemon.close());
  await daemon.clock.runTo(EIGHT);
  const ended = daemon.events.filter(({ event }) => event.kind === 'write_ended');
  expect(ended.map(({ atMs }) => atMs)).toEqual([EIGHT - 15_000]);
});
