/** The findings of each project, as the leader keeps them in the store: every daemon and command shows the same. */
import type { UsageStore } from '../../ports/store.ts';
import type { FindingDocument } from '../../ports/waste.ts';

/** Where they are in the store, by the id of the project: no account has this name. */
const PLACE = ' waste';
const VERSION = 1;

/** Of one project no more are kept: those that may save most. */
const MOST_KEPT = 100;

/** What was found in one project. */
export interface ProjectFindings {
  account: string;
  /** When it was looked at, milliseconds since the epoch. */
  atMs: number;
  findings: FindingDocument[];
}

export async function keepFindings(store: UsageStore, projectId: string, found: ProjectFindings): Promise<void> {
  const { account, atMs, findings } = found;
  const kept = { version: VERSION, account, atMs, findings: findings.slice(0, MOST_KEPT) };
  await store.putUsage(PLACE, new Map([[projectId, new TextEncoder().encode(JSON.stringify(kept))]]));
}

export async function forgetFindings(store: UsageStore, projectIds: readonly string[]): Promise<void> {
  if (projectIds.length > 0) await store.deleteUsage(PLACE, projectIds);
}

/** Everything that is kept, by project. What another version has written counts as not there: it is found again. */
export async function readFindings(
  store: Pick<UsageStore, 'usageUnits' | 'usage'>,
): Promise<Map<string, ProjectFindings>> {
  const kept = await store.usage(PLACE, await store.usageUnits(PLACE));
  const found = new Map<string, ProjectFindings>();
  for (const [projectId, bytes] of kept) {
    const one = parse(new TextDecoder().decode(bytes));
    if (one) found.set(projectId, one);
  }
  return found;
}

function parse(text: string): ProjectFindings | undefined {
  try {
    const { version, account, atMs, findings } = JSON.parse(text);
    return version === VERSION && Array.isArray(findings) ? { account, atMs, findings } : undefined;
  } catch {
    return undefined;
  }
}
