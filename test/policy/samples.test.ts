import { DateTime } from 'luxon';
import { describe, expect, it } from 'vitest';
import { compileSelector } from '../../src/domain/policy/select.ts';
import { nextChangeOfAny } from '../../src/domain/time/windows.ts';
import { DEFAULT_POLICY_SETTINGS, loadPolicySet } from '../../src/policy/load.ts';
import { schedulesOf } from './policy-text.ts';

const DEMO = ['web-shop', 'web-blog', 'web-checkout', 'dev-alice', 'dev-bob', 'dev-ci', 'data-etl', 'data-reports'].map(
  (name) => `demo-${name}`,
);

async function samples() {
  const result = await loadPolicySet({
    paths: ['policies'],
    settings: DEFAULT_POLICY_SETTINGS,
    cwd: new URL('../..', import.meta.url).pathname,
  });
  if (!result.ok) throw new Error(JSON.stringify(result.problems));
  return result.set.policies;
}

function compute(projectName: string) {
  return {
    account: 'main',
    projectId: 'p',
    projectName,
    computeId: 'ep-1',
    branchId: 'br-1',
    type: 'read_write',
    regionId: 'r',
    state: 'active',
    disabled: false,
    createdAtMs: 0,
    minCu: 1,
    maxCu: 1,
    suspendTimeoutSeconds: 300,
  } as const;
}

describe('the sample policies', () => {
  it('select computes of the demo and nothing else', async () => {
    for (const policy of await samples()) {
      const selects = compileSelector(policy.select);
      const now = policy.select.minAgeMs;
      expect(DEMO.some((name) => selects(compute(name), now) === 'yes')).toBe(true);
      for (const name of ['web-shop', 'demo', 'production', 'demo2-web-shop'])
        expect(selects(compute(name), now)).toBe('no');
    }
  });

  it('change together at few instants of a working day', async () => {
    const policies = await samples();
    const start = DateTime.fromISO('2026-06-03T00:00', { zone: 'Europe/Berlin' }).toMillis();
    const instants = new Set<number>();
    for (const specs of schedulesOf(policies).flatMap((policy) => policy.windows.map((window) => window.at))) {
      for (
        let at = nextChangeOfAny(specs, start - 1);
        at !== undefined && at < start + 86_400_000;
        at = nextChangeOfAny(specs, at)
      )
        instants.add(at);
    }
    const times = [...instants]
      .sort((a, b) => a - b)
      .map((ms) => DateTime.fromMillis(ms, { zone: 'Europe/Berlin' }).toFormat('HH:mm'));
    expect(times).toEqual(['06:00', '07:00', '08:00', '18:30', '20:00', '22:00']);
  });
});
