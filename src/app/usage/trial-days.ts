/** Stores the usage of trials by local day, since hours are stored for two weeks only, and trials take longer. Also stores the policies in effect. */
import { chunksOf } from '../../common/chunks.ts';
import { localDayAt } from '../../domain/time/windows/local-time.ts';
import { endDayOf, type TrialDesign, trialSpan } from '../../domain/trial/assignment.ts';
import { type LocalDay, localDays, moreComplete } from '../../domain/trial/cells.ts';
import { seriesOf } from '../../domain/usage/stored.ts';
import { type UsageUnit, unitName } from '../../domain/usage/usage.ts';
import type { UsageStore } from '../../ports/store.ts';
import { type OrganizationRef, type StoredUsage, UNITS_AT_ONCE, type UsageReader, usageKey } from './usage-account.ts';

export interface KeptTrial {
  name: string;
  design: TrialDesign;
  units: readonly UsageUnit[];
}

/** By the number of local days since 1970-01-01. */
export type TrialDays = ReadonlyMap<number, LocalDay>;

function trialKey(organization: OrganizationRef, name: string): string {
  return `${usageKey(organization)}/trial/${name}`;
}

/** Stores the usage of each past day of a trial that has begun, and its number of unknown hours, unless the stored day is more complete. */
export async function keepTrialDays(
  store: UsageStore,
  organization: OrganizationRef,
  { stored, trial, nowMs }: { stored: UsageReader; trial: KeptTrial; nowMs: number },
): Promise<void> {
  const { zone, fromDay } = trial.design;
  const untilDay = Math.min(localDayAt(zone, nowMs), endDayOf(trial.design));
  if (untilDay <= fromDay) return;
  for (const units of chunksOf(trial.units, UNITS_AT_ONCE)) {
    const before = await readTrialDays(store, organization, trial.name, units);
    const changed = (await stored.read(units)).map((usage) => {
      const days = localDays(seriesOf(usage).buckets, { zone, fromDay, untilDay });
      return [unitName(usage), encodeDays(moreComplete(before.get(unitName(usage)) ?? new Map(), days))] as const;
    });
    await store.putUsage(trialKey(organization, trial.name), new Map(changed));
  }
}

/** The stored days of a trial by unit; units that were never stored are left out. */
export async function readTrialDays(
  store: StoredUsage,
  organization: OrganizationRef,
  name: string,
  units: readonly UsageUnit[],
): Promise<Map<string, TrialDays>> {
  const bytes = await store.usage(trialKey(organization, name), units.map(unitName));
  return new Map([...bytes].map(([unit, one]) => [unit, decodeDays(one)]));
}

/** Deletes the days and the noted policies of a trial. */
export async function forgetTrial(store: UsageStore, organization: OrganizationRef, name: string): Promise<void> {
  const key = trialKey(organization, name);
  await store.deleteUsage(key, await store.usageUnits(key));
}

/** One number for each day: CU-seconds, or, if negative, the number of unknown hours. */
interface StoredDays {
  from: number;
  days: number[];
}

function encodeDays(days: TrialDays): Uint8Array {
  const from = days.size === 0 ? 0 : Math.min(...days.keys());
  const end = days.size === 0 ? 0 : Math.max(...days.keys()) + 1;
  const stored: StoredDays = {
    from,
    days: Array.from({ length: end - from }, (_, index) => {
      const { cuSeconds, unknownHours } = days.get(from + index) ?? { cuSeconds: null, unknownHours: 24 };
      return cuSeconds === null ? -Math.max(1, unknownHours) : Math.round(cuSeconds);
    }),
  };
  return new TextEncoder().encode(JSON.stringify(stored));
}

function decodeDays(bytes: Uint8Array): TrialDays {
  const { from, days }: StoredDays = JSON.parse(new TextDecoder().decode(bytes));
  return new Map(
    days.map((value, index) => {
      const isKnown = value >= 0;
      return [from + index, { cuSeconds: isKnown ? value : null, unknownHours: isKnown ? 0 : -value }];
    }),
  );
}

/* The policy sets in effect during a trial, since changes of them affect its result. */

/** The noted policies are stored beside the days of units, as a unit of this name, which no other has. */
const POLICIES = ' ';

/** The most changes that are stored of one trial. */
const MAX_CHANGES = 1_000;

/** A policy set and the instant from which it was in effect, milliseconds since the epoch. */
export interface PoliciesSince {
  atMs: number;
  setHash: string;
  /** The source of the rules, such as a commit. */
  revision: string | null;
}

/** Notes the current policies while the trial runs, if they differ from the last noted ones. Drops notes of an earlier trial of this name. */
export async function keepTrialPolicies(
  store: UsageStore,
  organization: OrganizationRef,
  { name, design }: Pick<KeptTrial, 'name' | 'design'>,
  now: PoliciesSince,
): Promise<void> {
  if (!isDuring(design, now)) return;
  const noted = await readNoted(store, organization, { name, design });
  const last = noted.at(-1);
  if (noted.length > MAX_CHANGES || (last?.setHash === now.setHash && last.revision === now.revision)) return;
  const bytes = new TextEncoder().encode(JSON.stringify([...noted, now]));
  await store.putUsage(trialKey(organization, name), new Map([[POLICIES, bytes]]));
}

/** Reads the changes of policies during a trial, oldest first; undefined if no daemon noted policies. */
export async function readPolicyChanges(
  store: StoredUsage,
  organization: OrganizationRef,
  trial: Pick<KeptTrial, 'name' | 'design'>,
): Promise<PoliciesSince[] | undefined> {
  const noted = await readNoted(store, organization, trial);
  return noted.length === 0 ? undefined : noted.slice(1);
}

function isDuring(design: TrialDesign, { atMs }: PoliciesSince): boolean {
  const { fromMs, untilMs } = trialSpan(design);
  return atMs >= fromMs && atMs < untilMs;
}

/** The policies that were noted during a trial. */
async function readNoted(
  store: StoredUsage,
  organization: OrganizationRef,
  { name, design }: Pick<KeptTrial, 'name' | 'design'>,
): Promise<PoliciesSince[]> {
  const bytes = (await store.usage(trialKey(organization, name), [POLICIES])).get(POLICIES);
  if (bytes === undefined) return [];
  const noted: unknown = JSON.parse(new TextDecoder().decode(bytes));
  return Array.isArray(noted) ? noted.filter((one) => isDuring(design, one)) : [];
}
