/**
 * What is tried after the quiet time, one thing after the other: a policy is added whose window opens soon; one trouble, or one action, meets its
 * boundary; and everything must be as it should soon after.
 */

import { type FaultKind, holdValues, type Making, type SimAction } from './plan.ts';
import type { SimSchedule } from './policies.ts';

const COUNT = 2;

/** Since a trial begins, in milliseconds: when its window opens and closes, when it ends, and when everything is looked at. */
const TIMES = { opensMs: 12_000, closesMs: 72_000, lastMs: 170_000, checksMs: [62_000, 105_000, 165_000] } as const;

/** Troubles, and how bad they are: an operation makes that changes are refused; a clock is a little off. */
const TROUBLES: readonly (readonly [FaultKind, number])[] = [
  ['api_refuses', 0.45],
  ['api_refuses', 0.45],
  ['api_down', 0.5],
  ['api_throttled', 0.5],
  ['api_lost', 0.5],
  ['api_unanswered', 0.5],
  ['api_slow', 0.3],
  ['store_down', 0.5],
  ['stall', 0.5],
  ['clock_off', 0.05],
  ['clock_off', 0.2],
];

/** The trials of a seed from an instant on, and when to look. */
export function trialsOf(making: Making, fromMs: number): { actions: SimAction[]; checksAtMs: number[] } {
  const begins = Array.from({ length: COUNT }, (_, at) => fromMs + at * TIMES.lastMs);
  return {
    actions: begins.flatMap((atMs) => aTrial(making, atMs)),
    checksAtMs: begins.flatMap((atMs) => TIMES.checksMs.map((ms) => atMs + ms)),
  };
}

function aTrial(making: Making, atMs: number): SimAction[] {
  const fromMs = atMs + TIMES.opensMs;
  const policy: SimSchedule = {
    ...{ kind: 'schedule', name: 'trial', projects: ['*'], priority: 9, otherwise: 'leave' },
    windows: [{ fromMs, toMs: atMs + TIMES.closesMs, ...holdValues(making.dice) }],
  };
  return [{ atMs, do: 'add_policy', file: 'platform', policy }, ...whatMeets(making, fromMs)];
}

function whatMeets({ dice, computes, daemons, projects }: Making, fromMs: number): SimAction[] {
  const [compute, daemon, project] = [dice.index(computes), dice.index(daemons), dice.index(projects)];
  const earlyMs = fromMs - dice.between(0, 4_000);
  const laterMs = fromMs + dice.between(2_000, 20_000);
  const [kind, by] = dice.pick(TROUBLES);
  const trouble: SimAction = {
    ...{ atMs: earlyMs, do: 'fault', kind, daemon, project, by },
    forMs: dice.between(1_000, 9_000),
  };
  const kill: SimAction = {
    ...{ atMs: fromMs - 100, do: 'kill', daemon, backAfterMs: dice.between(500, 9_000), versions: 0 },
    ...{ afterCalls: dice.index(2), method: 'putIntent' },
  };
  const isFreeze = dice.is(0.3);
  return dice.pick<SimAction[]>([
    [],
    [trouble],
    [trouble],
    [kill],
    [
      { atMs: earlyMs, do: 'hold', compute, values: isFreeze ? {} : holdValues(dice), isFreeze, seconds: 300 },
      { atMs: laterMs, do: 'release_compute', compute },
    ],
    [
      { atMs: earlyMs, do: 'freeze', project, seconds: 180 },
      { atMs: laterMs, do: 'unfreeze', nth: 0 },
    ],
    [{ atMs: earlyMs, do: 'clients_come', compute, count: 3, forMs: 20_000 }],
  ]);
}
