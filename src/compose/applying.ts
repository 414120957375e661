import { randomUUID } from 'node:crypto';
import { systemClock } from '../adapters/clock/system-clock.ts';
import { forgetCachedFleet } from '../adapters/control-api/answer-cache.ts';
import { createGroupBudget } from '../adapters/control-api/group-budget.ts';
import { createFleet } from '../app/fleet/fleet.ts';
import type { OnProgress } from '../app/fleet/read-fleet.ts';
import { MAX_CLOCK_OFFSET_MS } from '../app/group/clock-skew.ts';
import { createOperationDurations } from '../app/operations/follow.ts';
import { createSlots } from '../app/operations/restart-slots.ts';
import {
  type AppliedChange,
  type ApplyPlanDeps,
  type ApplyPlanOptions,
  applyPlan,
} from '../app/operator/apply-plan.ts';
import { createOverrides } from '../app/overrides.ts';
import { compileRules } from '../app/rules.ts';
import { type PlanResult, planFor } from '../app/situation/plan.ts';
import { sourceFromStore } from '../app/situation/stored-source.ts';
import { recordHistory } from '../app/telemetry/history.ts';
import { createOutages } from '../app/telemetry/outages.ts';
import type { Result } from '../common/result.ts';
import type { EvaluatedCompute } from '../domain/evaluate/evaluate.ts';
import { verdictAt } from '../domain/guards/state.ts';
import type { PolicySet } from '../domain/policy/policy.ts';
import { limitsOf } from '../domain/rate-budget/limits.ts';
import type { Clock } from '../ports/clock.ts';
import type { Store } from '../ports/store.ts';
import type { Settings } from '../settings/settings.ts';
import { commandLineCaller } from './command-line-caller.ts';
import { NO_METRICS, openControlApi, patienceOf, readKeysAtStart } from './control-api.ts';
import { explainApiError } from './explain-api-error.ts';
import { rulesOf } from './rules-from-files.ts';
import { planRulesOf } from './situation.ts';
import { openStore, SILENT_LOG } from './store.ts';

type Listeners = Pick<ApplyPlanOptions, 'signal' | 'onBegin' | 'onEnd'>;

/** Lets a command plan and write beside the daemons, with their store, leases and rate budget. */
export interface Applying {
  /** Reads the fleet and plans for now, as enforce mode would. */
  plan(onProgress?: OnProgress): Promise<Result<PlanResult>>;
  applyPlan(planning: PlanResult, listeners: Listeners): Promise<Map<EvaluatedCompute, AppliedChange>>;
  close(): Promise<void>;
}

/** Opens the control API with a key that may write, and the store, which is made if missing. Sends no request yet. */
export async function openApplying(options: { settings: Settings; policies: PolicySet }): Promise<Result<Applying>> {
  const { settings, policies } = options;
  const keys = readKeysAtStart(settings.accounts, 'write');
  if (!keys.ok) return keys;
  const opened = await openStore(settings);
  if (!opened.ok) return opened;
  const { engine, store } = opened.value;
  await forgetCachedFleet(settings.stateDir);
  const budget = await createGroupBudget({
    engine,
    limits: limitsOf(settings.apiRequestsPerMinute, settings.apiReserve),
    clock: systemClock(),
  });
  const patience = patienceOf(settings);
  const api = openControlApi({ settings, purpose: 'write', hide: () => {}, metrics: NO_METRICS, budget, patience });
  const history = recordHistory({
    store,
    log: SILENT_LOG,
    clock: systemClock(),
    rules: { current: compileRules(rulesOf(settings, policies)) },
  });
  const source = { api, isLive: true, facts: new Map(), explain: explainApiError.bind(undefined, settings) };
  const rules = planRulesOf(settings);
  return {
    ok: true,
    value: {
      plan: (onProgress) =>
        planFor(
          { policies, mode: 'enforce', onProgress },
          { source, stored: sourceFromStore(store), rules, now: Date.now },
        ),
      applyPlan: (planning, listeners) =>
        applyPlan({
          deps: depsOf({ settings, api, store, reportEvent: history.remember }, planning),
          ...planning,
          ...listeners,
        }),
      async close() {
        await history.close();
        await api.close();
        await opened.value.close();
      },
    },
  };
}

function depsOf(
  { settings, api, store, reportEvent }: Pick<ApplyPlanDeps, 'api' | 'store' | 'reportEvent'> & { settings: Settings },
  { policies, situation }: PlanResult,
): ApplyPlanDeps {
  const clock = systemClock();
  const fleet = createFleet({ clock });
  const telemetry = { log: SILENT_LOG, metrics: NO_METRICS };
  const current = { ...rulesOf(settings, policies.set), policies, profiles: situation.profiles };
  return {
    clock,
    api,
    store,
    telemetry,
    rules: { current },
    reportEvent,
    caller: commandLineCaller(),
    fleet,
    outages: createOutages(telemetry, clock),
    slots: createSlots({ store, clock, fleet }),
    durations: createOperationDurations(),
    overrides: createOverrides({ telemetry }),
    // A command counts no connections: it uses the counts of the plan.
    samples: { historyOf: (computeId) => situation.connections?.get(computeId) ?? new Map() },
    // A command asks no guards. It uses the verdicts that the plan has read from the store, and that `applyPlan` reads again before each write.
    guards: { of: (guard, computeId, nowMs) => verdictAt(situation.guardStates?.get(computeId), guard, nowMs) },
    mayWrite: () => checkClock(store, clock),
    mode: 'enforce',
    newId: randomUUID,
    holder: randomUUID(),
  };
}

/** Refuses writes if this clock differs from the store's, since policies would then apply to another instant than for daemons. */
async function checkClock(store: Store, clock: Clock): ReturnType<ApplyPlanDeps['mayWrite']> {
  const offMs = Math.abs((await store.timeMs()) - clock.now());
  if (offMs <= MAX_CLOCK_OFFSET_MS) return { ok: true };
  const message = `this machine's clock is ${Math.round(offMs / 1000)} s off from the store's`;
  return { ok: false, reason: { code: 'clock_off', message } };
}
