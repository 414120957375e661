import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { compare } from '../../../src/cli/diff/compare.ts';
import { diffMarkdown, diffText } from '../../../src/cli/diff/render.ts';
import { diffJson } from '../../../src/cli/diff/to-json.ts';
import { unknownBudgetNotes } from '../../../src/cli/forecast/budget-steps.ts';
import { foresee, withLeaderDecisions } from '../../../src/cli/forecast/outlook.ts';
import { settingsOf } from '../../../src/domain/compute/compute.ts';
import { differencesOf, forecast, type Segment } from '../../../src/domain/forecast/forecast.ts';
import type { CompiledPolicies } from '../../../src/domain/policy/compiled-policies.ts';
import type { Policy } from '../../../src/domain/policy/policy.ts';
import type { Span } from '../../../src/domain/time/span.ts';
import { aBudget, aCompute, aSchedule, aStepSpan, at, aWindow, compiled } from '../../support/builders.ts';
import { PRICING, SPRING_WEEK, SUBJECTS, webAndDev } from './foreseen-fleet.ts';

const RATE = { apiRequestsPerMinute: 700, apiReserve: 0.05, accounts: [] };
const options = { ...SPRING_WEEK, zone: 'Europe/Berlin' };

function comparison(before: Policy[], after: Policy[]) {
  const foreseen = (policies: CompiledPolicies) => ({
    policies,
    outlooks: foresee({ ...SPRING_WEEK, policies, subjects: SUBJECTS, pricing: PRICING }),
  });
  return compare(foreseen(compiled(...before)), foreseen(compiled(...after)), SPRING_WEEK);
}

const earlier = comparison(webAndDev(), webAndDev({ webFromHour: 7 }));

describe('what ebb diff prints', () => {
  it('puts together what changes in the same way', () => {
    expect(`\n${diffText(earlier, options)}\n`).toBe(`
ebb diff: 2 of 3 computes change

Mon 23 Mar 2026, 00:00 to Mon 30 Mar 2026, 00:00 (Europe/Berlin)

  policy changed: office-hours

2 computes: web-shop (ep-shop), web-blog (ep-blog)
  size 0.25-1 → 1-4 CU, suspends after 5m → never: 07:00–08:00 on Mon 23 Mar, Tue 24 Mar, Wed 25 Mar, Thu 26 Mar, Fri 27 Mar
  CU-hours: 100–634 → 110–664 (+10 to +30)

All computes
  CU-hours: 100–688 → 110–718 (+10 to +30)
  a month: no usage data (ebb run collects it, --usage reads it)
  price: $10.60–72.93 → $11.66–76.11 (+$1.06 to +$3.18)
`);
  });

  it('says plainly that nothing changes, also where policies do', () => {
    const trial = aSchedule({ name: 'trial', mode: 'observe' });
    const [old] = webAndDev();
    expect(diffText(comparison(webAndDev(), webAndDev()), options)).toMatch(
      /^ebb diff: no change for any compute \(of 3\)\n/,
    );
    const observed = diffText(comparison([...webAndDev()], [...webAndDev(), trial]), options);
    expect(observed).toContain('no change for any compute');
    expect(observed).toContain('policy new: trial');
    expect(old && diffText(comparison(webAndDev(), [old]), options)).toContain('policy gone: dev-days');
  });

  it('is a comment for a pull request in which names can be nothing but names', () => {
    const compute = aCompute({ projectName: '`</code>**web**\n|x|' });
    const foreseen = (...list: Policy[]) => {
      const policies = compiled(...list);
      return { policies, outlooks: foresee({ ...SPRING_WEEK, policies, subjects: [{ compute }], pricing: PRICING }) };
    };
    const always = aSchedule({ name: 'always', windows: [], otherwise: { size: { minCu: 4, maxCu: 4 } } });
    const markdown = diffMarkdown(compare(foreseen(), foreseen(always), SPRING_WEEK), options);
    expect(`\n${markdown}\n`).toBe(`
### ebb diff: 1 of 1 computes change

Mon 23 Mar 2026, 00:00 to Mon 30 Mar 2026, 00:00 (Europe/Berlin)

- policy new: \`always\`

**\`'</code>**web**?/x/\` (ep-one)**

- size 0.25-2 → 4 CU: from Mon 23 Mar 00:00 to Mon 30 Mar 00:00
- CU-hours: 0–334 → 0–668 (0 to +334)

**All computes**

- CU-hours: 0–334 → 0–668 (0 to +334)
- a month: no usage data (ebb run collects it, --usage reads it)
- price: $0.00–35.40 → $0.00–70.81 ($0.00 to +$35.40)
`);
  });

  it('is JSON with the values of both sides', () => {
    const [first] = diffJson(SPRING_WEEK, earlier).computes;
    expect(first?.differences[0]).toEqual({
      from: '2026-03-23T06:00:00Z',
      to: '2026-03-23T07:00:00Z',
      old: { min_cu: 0.25, max_cu: 1, suspend_timeout_seconds: 300, policies: ['office-hours'] },
      new: { min_cu: 1, max_cu: 4, suspend_timeout_seconds: -1, policies: ['office-hours'] },
    });
    expect(first?.cu_hours.delta).toEqual({ low: 5, high: 15 });
  });
});

describe('what a leader has decided', () => {
  const large = aSchedule({ name: 'large', windows: [], otherwise: { size: { minCu: 4, maxCu: 4 } } });
  const span = { fromMs: at('2026-03-30T00:00:00Z'), toMs: at('2026-04-02T00:00:00Z') };
  const decided = (policies: CompiledPolicies, more: object = {}) => {
    const subjects = [{ compute: aCompute() }];
    const known = { budgets: [{ spans: [aStepSpan()] }], subjects, readyWaves: [], settings: RATE, span, ...more };
    const withDecisions = withLeaderDecisions(policies, known);
    const outlooks = foresee({ ...span, policies: withDecisions, subjects, pricing: PRICING });
    return { policies: withDecisions, outlooks };
  };

  it('counts under the policies that have it: a step of a budget that limits now', () => {
    const comparison = compare(decided(compiled(large)), decided(compiled(large, aBudget())), span);
    const [difference, ...more] = comparison.changes[0]?.differences ?? [];
    expect(more).toEqual([]);
    // The compute follows the end of the step within six hours.
    expect(difference).toMatchObject({ fromMs: span.fromMs, before: { maxCu: 4 }, after: { maxCu: 1 } });
    expect(difference?.toMs).toBeGreaterThan(at('2026-04-01T00:00:00Z'));
    expect(difference?.toMs).toBeLessThan(at('2026-04-01T06:00:00Z'));
    expect(diffText(comparison, { ...span, zone: 'UTC' })).toContain(
      '\n\n  budget (account default): 100% spent limits from 2026-03-20T10:00:00Z to 2026-04-01T00:00:00Z.\n\n',
    );
    const without = compare(decided(compiled(large)), decided(compiled(large)), span);
    expect(diffText(without, { ...span, zone: 'UTC' })).not.toContain('limits');
  });

  it('counts for nothing where a step is not in the policies, or only observed', () => {
    for (const budget of [
      aBudget({ steps: [{ at: 0.5, of: 'spent', notify: ['team'] }] }),
      aBudget({ mode: 'observe' }),
    ]) {
      const comparison = compare(decided(compiled(large)), decided(compiled(large, budget)), span);
      expect([comparison.changes, comparison.limiting]).toEqual([[], []]);
    }
  });

  it('is missed where nothing is known of a budget that may limit', () => {
    const [limiting, notifying] = [
      aBudget(),
      aBudget({ name: 'mails', steps: [{ at: 1, of: 'spent', notify: ['team'] }] }),
    ];
    const sets = [compiled(limiting).set, compiled(limiting, notifying).set];
    expect(unknownBudgetNotes(sets, [])).toEqual([
      'the spending of budget is unknown: the forecast assumes that none of its steps limits',
    ]);
    expect(unknownBudgetNotes(sets, [{ policy: 'budget' }])).toEqual([]);
  });

  it('names waves that the old policies don’t have', () => {
    const morning = (readyInWaves: boolean) =>
      aSchedule({
        windows: [
          {
            at: [aWindow()],
            size: { minCu: 1, maxCu: 4 },
            readyLeadMs: 180_000,
            ...(readyInWaves && { readyInWaves }),
          },
        ],
        otherwise: { size: { minCu: 0.25, maxCu: 0.5 } },
      });
    const many = Array.from({ length: 500 }, (_, index) => ({
      compute: aCompute({ computeId: `ep-${index}`, projectId: `p-${index}`, state: 'idle', minCu: 0.25, maxCu: 0.5 }),
    }));
    const monday = { fromMs: at('2026-03-30T00:00:00Z'), toMs: at('2026-03-31T00:00:00Z') };
    const herd = { subjects: many, span: monday };
    const [old, now] = [morning(false), morning(true)].map((policy) => decided(compiled(policy), herd));
    if (!old || !now) throw new Error('none');
    const line =
      'Ready at 2026-03-30T08:00:00Z (account default), in waves of 15 s: 120 from 07:59:30Z, 380 from 07:59:45Z.';
    expect(diffText(compare(old, now, monday), { ...monday, zone: 'UTC' })).toContain(`\n\n  ${line}\n\n`);
    expect(diffText(compare(now, now, monday), { ...monday, zone: 'UTC' })).not.toContain('waves');
    expect(diffJson(monday, compare(old, now, monday)).ready_waves).toMatchObject({
      old: [],
      new: [{ opens_at: '2026-03-30T08:00:00Z', waves: [{ computes: 120 }, { computes: 380 }] }],
    });
  });
});

describe('differences', () => {
  const hours = fc.array(fc.tuple(fc.nat(23), fc.integer({ min: 1, max: 5 }), fc.constantFrom(1, 2, 4)), {
    maxLength: 4,
  });
  const scheduleOf = (windows: [number, number, number][]) =>
    aSchedule({
      windows: windows.map(([from, length, cu]) => {
        const end = (from + length) * 60;
        return {
          at: [aWindow({ startMinute: from * 60, endMinute: end % 1440, endDayOffset: Math.floor(end / 1440) })],
          size: { minCu: cu, maxCu: cu },
        };
      }),
    });

  it('are exactly where the two forecasts have other values', () => {
    fc.assert(
      fc.property(hours, hours, fc.array(fc.nat(7 * 24 * 60 - 1), { minLength: 30 }), (a, b, minutes) => {
        const segments = [a, b].map(
          (windows) =>
            forecast({ policies: compiled(scheduleOf(windows)), compute: aCompute(), ...SPRING_WEEK }).segments,
        );
        const [before = [], after = []] = segments;
        const found = differencesOf(before, after);
        for (const instantMs of minutes.map((minute) => SPRING_WEEK.fromMs + minute * 60_000)) {
          const [old, now] = [before, after].map((all) => valuesAt(all, instantMs));
          const [difference, ...more] = found.filter((one) => contains(one, instantMs));
          expect(more).toEqual([]);
          const expected = JSON.stringify(old) === JSON.stringify(now) ? undefined : [old, now];
          expect(difference && [settingsOf(difference.before), settingsOf(difference.after)]).toEqual(expected);
        }
      }),
    );
  });
});

function contains({ fromMs, toMs }: Span, instantMs: number): boolean {
  return fromMs <= instantMs && instantMs < toMs;
}

function valuesAt(segments: readonly Segment[], instantMs: number) {
  return segments.filter((segment) => contains(segment, instantMs)).map(settingsOf)[0];
}
