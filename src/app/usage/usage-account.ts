/** The stored usage of an organization: the usage of each unit under its name, and metadata. */

import { parseJson } from '../../common/result.ts';
import type { Compute } from '../../domain/compute/compute.ts';
import type { AccountPlan } from '../../domain/compute/cost.ts';
import { decodeUsage, encodeUsage, noUsage, seriesOf, type UnitUsage } from '../../domain/usage/stored.ts';
import { type UsageSeries, type UsageUnit, unitName } from '../../domain/usage/usage.ts';
import type { Project } from '../../ports/control-api.ts';
import type { UsageStore } from '../../ports/store.ts';
import { lastPlan } from './project-periods.ts';

/** The metadata are stored under this name, which no unit has. */
const METADATA = ' ';

/** The facts of an organization that are stored beside the usage of its units. Instants are milliseconds since the epoch. */
export interface UsageMetadata {
  /** The hour and the day of the last complete reading. */
  hourMs: number;
  dayMs: number;
  /** The plans with the instants from which they apply, oldest first. */
  plans: [fromMs: number, plan: string][];
  /** The vendor's own monthly figures, CU-seconds by the start of the month. */
  months: [startMs: number, cuSeconds: number][];
  /** Branches that are no longer listed, and since when. */
  gone: [unit: string, sinceMs: number][];
  /** Other metrics than compute by day, summed over projects. */
  quantities: [startMs: number, metrics: Readonly<Record<string, number>>][];
  /** Names of the trials whose days are stored. */
  trials: string[];
}

/** The most units that one call reads from a store, so that the usage of a large organization doesn't fill the memory. */
export const UNITS_AT_ONCE = 500;

/** Stored usage, from a store or from a daemon that has one. */
export type StoredUsage = Pick<UsageStore, 'usageUnits' | 'usage'>;

/** The part of {@link UsageAccount} that only reads. */
export type UsageReader = Pick<UsageAccount, 'metadata' | 'units' | 'read'>;

export interface UsageAccount {
  metadata(): Promise<UsageMetadata | undefined>;
  putMetadata(metadata: UsageMetadata): Promise<void>;
  units(): Promise<UsageUnit[]>;
  /** The stored usage of these units; empty for a unit without any. */
  read(units: readonly UsageUnit[]): Promise<UnitUsage[]>;
  put(usage: readonly UnitUsage[]): Promise<void>;
  forget(units: readonly UsageUnit[]): Promise<void>;
}

/** Identifies an organization of an account. */
export interface OrganizationRef {
  account: string;
  organization: string;
}

/** The key of an organization's usage in the store. */
export function usageKey({ account, organization }: OrganizationRef): string {
  return `${account}/${organization}`;
}

/** The stored usage of an organization. Data of another version count as absent, and are read again. */
export function usageAccount(store: UsageStore, organization: OrganizationRef): UsageAccount {
  const key = usageKey(organization);
  return {
    ...usageReader(store, organization),
    putMetadata: (metadata) =>
      store.putUsage(key, new Map([[METADATA, new TextEncoder().encode(JSON.stringify(metadata))]])),
    put: (usage) => store.putUsage(key, new Map(usage.map((unit) => [unitName(unit), encodeUsage(unit)]))),
    forget: (units) => store.deleteUsage(key, units.map(unitName)),
  };
}

/** Like {@link usageAccount}, but read-only. */
export function usageReader(store: StoredUsage, organization: OrganizationRef): UsageReader {
  const key = usageKey(organization);
  return {
    async metadata() {
      const bytes = (await store.usage(key, [METADATA])).get(METADATA);
      return bytes === undefined ? undefined : readMetadata(new TextDecoder().decode(bytes));
    },
    units: async () => (await store.usageUnits(key)).filter((name) => name !== METADATA).map(unitNamed),
    async read(units) {
      const bytes = await store.usage(key, units.map(unitName));
      return units.map((unit) => {
        const found = bytes.get(unitName(unit));
        return (found && decodeUsage(unit, found)) ?? noUsage(unit);
      });
    },
  };
}

/** Reads the stored usage of the branches of a project's computes, and the last stored plan of its organization. */
export async function storedUsageOf(
  store: StoredUsage,
  { account, organizationId: organization, projectId }: Project,
  computes: readonly Compute[],
): Promise<{ usage: UsageSeries[]; plan: AccountPlan | undefined }> {
  if (organization === undefined) return { usage: [], plan: undefined };
  const stored = usageReader(store, { account, organization });
  const metadata = await stored.metadata();
  const branchIds = new Set(computes.map(({ branchId }) => branchId));
  const usage = metadata ? await stored.read([...branchIds].map((branchId) => ({ projectId, branchId }))) : [];
  return { usage: usage.map(seriesOf), plan: lastPlan(metadata?.plans ?? []) };
}

/** The inverse of `unitName`. */
export function unitNamed(name: string): UsageUnit {
  const [projectId = '', branchId = null] = name.split('/');
  return { projectId, branchId };
}

function readMetadata(text: string): UsageMetadata | undefined {
  const metadata = (parseJson(text) ?? {}) as Partial<UsageMetadata>;
  const { hourMs, dayMs, plans, months, gone, quantities = [], trials = [] } = metadata;
  const isComplete = typeof hourMs === 'number' && typeof dayMs === 'number' && plans && months && gone;
  return isComplete ? { hourMs, dayMs, plans, months, gone, quantities, trials } : undefined;
}

/** An organization of an account, with the ids of its listed projects. */
export interface Organization extends OrganizationRef {
  projectIds: string[];
}

/** The organizations that `accounts` name, and those of the projects. */
export function organizationsOf(
  projects: Iterable<Pick<Project, 'account' | 'projectId' | 'organizationId'>>,
  accounts: readonly { name: string; organization?: string }[],
): Organization[] {
  const organizations = new Map<string, Organization>();
  for (const { name: account, organization } of accounts) {
    if (organization !== undefined)
      organizations.set(`${account} ${organization}`, { account, organization, projectIds: [] });
  }
  for (const { account, organizationId: organization, projectId } of projects) {
    if (organization === undefined) continue;
    const existing = organizations.get(`${account} ${organization}`) ?? { account, organization, projectIds: [] };
    existing.projectIds.push(projectId);
    organizations.set(`${account} ${organization}`, existing);
  }
  return [...organizations.values()];
}
