import { type Compute, type ComputeSettings, type Desired, hasSettings } from '../compute/compute.ts';
import type { Decision } from '../decide/decide.ts';
import type { DatedVerdict } from '../guards/state.ts';
import { type Action, type LoweringGuard, reasonsOf } from '../plan/plan.ts';
import type { GuardRemedy } from '../records/compute-record.ts';
import { isoInstant } from '../time/units.ts';
import type { EvaluatedCompute } from './evaluate.ts';
import type { FleetPlan } from './plan-fleet.ts';

/** A plan as JSON for other programs. Its field names are a stable interface. */
export interface FleetPlanJson {
  at: string;
  hash: string;
  computes: PlannedComputeJson[];
}

export interface PlannedComputeJson {
  project_id: string;
  compute_id: string;
  current: SettingsJson & { state: string };
  /** null leaves the field as it is. */
  desired: { [Field in keyof SettingsJson]: SettingsJson[Field] | null };
  verdict: 'act' | 'wait' | 'none';
  actions: ActionJson[];
  /** The waiting actions, if any. */
  held?: ActionJson[];
  until?: string;
  /** The guards of its lowerings, if any. */
  guards?: LoweringGuardJson[];
  reasons: { code: string; policy?: string; message: string }[];
}

interface ActionJson {
  kind: 'update' | 'restart';
  fields?: Partial<SettingsJson>;
  disconnects: boolean;
}

export interface LoweringGuardJson {
  guard: string;
  remedy: GuardRemedy;
  /** True if the guard is asked before the lowering. Otherwise it only watches the compute afterwards. */
  asked_first: boolean;
  verdict?: VerdictJson;
}

/** `at` is when the guard was asked; null if it was not. Null numbers are unknown or infinite. */
export interface VerdictJson {
  state: 'healthy' | 'bad' | 'unknown';
  value: number | null;
  limit: number | null;
  message: string;
  at: string | null;
}

export interface SettingsJson {
  min_cu: number;
  max_cu: number;
  suspend_timeout_seconds: number;
}

export function fleetPlanJson({ atMs, hash, computes }: FleetPlan): FleetPlanJson {
  return { at: isoInstant(atMs), hash, computes: computes.map(plannedComputeJson) };
}

export function plannedComputeJson({ compute, decision, plan }: EvaluatedCompute): PlannedComputeJson {
  return {
    project_id: compute.projectId,
    compute_id: compute.computeId,
    current: { ...settingsJson(compute), state: compute.state },
    desired: desiredJson(decision, compute),
    verdict: plan.verdict,
    actions: plan.actions.map(actionJson),
    ...(plan.verdict === 'act' && plan.held && { held: plan.held.map(actionJson) }),
    ...(plan.untilMs !== undefined && { until: isoInstant(plan.untilMs) }),
    ...(plan.guards && { guards: plan.guards.map(loweringGuardJson) }),
    reasons: reasonsOf(plan).map(({ code, policy, message }) => ({ code, ...(policy && { policy }), message })),
  };
}

function loweringGuardJson({ policy: guard, remedy, isAskedFirst, verdict }: LoweringGuard): LoweringGuardJson {
  return {
    guard,
    asked_first: isAskedFirst,
    remedy,
    ...(isAskedFirst && { verdict: verdictJson(verdict) }),
  };
}

export function verdictJson({ state, value, limit, message, atMs }: DatedVerdict): VerdictJson {
  const finite = (number: number | undefined) => (number !== undefined && Number.isFinite(number) ? number : null);
  return {
    state,
    value: finite(value),
    limit: finite(limit),
    message,
    at: atMs === undefined ? null : isoInstant(atMs),
  };
}

function actionJson({ kind, fields, disconnects }: Action): ActionJson {
  return { kind, ...(kind === 'update' && { fields: fieldsJson(fields) }), disconnects };
}

export function desiredJson(
  decision: Pick<Decision, 'enforced' | 'desired'>,
  compute: Compute,
): PlannedComputeJson['desired'] {
  const { size, suspendTimeoutSeconds } = wantedSettings(decision, compute);
  const { minCu = null, maxCu = null } = size ?? {};
  return { min_cu: minCu, max_cu: maxCu, suspend_timeout_seconds: suspendTimeoutSeconds };
}

/** The wanted settings: of enforcing policies where they change something, otherwise of all policies. */
export function wantedSettings(
  { enforced, desired }: Pick<Decision, 'enforced' | 'desired'>,
  compute: Compute,
): Desired {
  const sizeDiffers = enforced.size !== null && !hasSettings(compute, enforced.size);
  const timeout = enforced.suspendTimeoutSeconds;
  const timeoutDiffers = timeout !== null && timeout !== compute.suspendTimeoutSeconds;
  return {
    size: sizeDiffers ? enforced.size : desired.size,
    suspendTimeoutSeconds: timeoutDiffers ? timeout : desired.suspendTimeoutSeconds,
  };
}

/** Settings with the control API's field names. */
export function settingsJson({ minCu, maxCu, suspendTimeoutSeconds }: ComputeSettings): SettingsJson {
  return { min_cu: minCu, max_cu: maxCu, suspend_timeout_seconds: suspendTimeoutSeconds };
}

/** Like {@link settingsJson}, for some of the settings. */
export function fieldsJson({ minCu, maxCu, suspendTimeoutSeconds }: Partial<ComputeSettings>): Partial<SettingsJson> {
  return {
    ...(minCu !== undefined && { min_cu: minCu }),
    ...(maxCu !== undefined && { max_cu: maxCu }),
    ...(suspendTimeoutSeconds !== undefined && { suspend_timeout_seconds: suspendTimeoutSeconds }),
  };
}
