import { stringify } from 'yaml';
import type { Compute } from '../../domain/compute/compute.ts';
import { groupBy } from '../../domain/grouping.ts';
import { UNOWNED } from '../../domain/policy/owners.ts';
import type { Finding, PolicyDraft } from '../../domain/recommend/finding.ts';
import { ascending } from '../../domain/sorted.ts';

export interface PolicyFile {
  path: string;
  text: string;
}

interface PolicyGroup {
  owner: string;
  draft: PolicyDraft;
  computes: Compute[];
}

export function policyYaml({ compute }: Pick<Finding, 'compute'>, draft: PolicyDraft): string {
  const policy = policyOf(draft.name, { computes: [compute.computeId] }, draft);
  return stringify(fileOf([policy], draft), { lineWidth: 0 });
}

/**
 * Returns as few policies as a person would write: one for all computes of an owner that need the same settings, which selects whole projects
 * if it can. Each owner has one file, or several if the policies need different time zones or calendars.
 */
export function policyFiles(findings: readonly Finding[], fleet: readonly Compute[]): PolicyFile[] {
  const files = groupBy(groupByPolicy(findings), pathOf);
  return [...files].map(([path, groups]) => ({ path, text: fileText(groups, fleet) }));
}

function pathOf({ owner, draft: { zone, holidays } }: PolicyGroup): string {
  const name = ['recommended', owner, zone, holidays].filter((part) => part !== undefined).join('-');
  return `${name.replaceAll(/[^\w-]+/g, '-').toLowerCase()}.yaml`;
}

function groupByPolicy(findings: readonly Finding[]): PolicyGroup[] {
  const groups = new Map<string, PolicyGroup>();
  for (const { owner, policy, compute } of findings) {
    if (policy === undefined) continue;
    const key = JSON.stringify([owner, policy]);
    const group = groups.get(key) ?? { owner, draft: policy, computes: [] };
    group.computes.push(compute);
    groups.set(key, group);
  }
  return [...groups.values()].toSorted((a, b) => ascending(a.draft.name, b.draft.name));
}

function fileText(groups: readonly PolicyGroup[], fleet: readonly Compute[]): string {
  const counts = new Map<string, number>();
  const policies = groups.map(({ owner, draft, computes }) => {
    const count = (counts.get(draft.name) ?? 0) + 1;
    counts.set(draft.name, count);
    const prefix = owner === UNOWNED ? 'recommended' : ownerInName(owner);
    const name = [prefix, draft.name, ...(count > 1 ? [count] : [])].join('-');
    return policyOf(name, selectorOf(computes, fleet), draft);
  });
  const [first] = groups;
  const owner = first === undefined || first.owner === UNOWNED ? {} : { owner: first.owner };
  const text = stringify(fileOf(policies, first?.draft, owner), { lineWidth: 0 });
  return `# Written by ebb recommend. Review it, and compare: ebb diff OLD NEW\n${text}`;
}

/** Returns a policy with its keys in the order in which people write them. */
function policyOf(name: string, select: object, { body: { kind, ...rest } }: PolicyDraft) {
  return { name, kind, select, ...rest };
}

function fileOf(policies: readonly object[], draft: PolicyDraft | undefined, owner: { owner?: string } = {}) {
  return {
    version: 1,
    ...(draft?.zone !== undefined && { timezone: draft.zone }),
    ...owner,
    ...(draft?.holidays !== undefined && { calendars: { holidays: { country: draft.holidays } } }),
    policies,
  };
}

/** Returns a selector by project if that selects no other compute, else by compute. */
function selectorOf(computes: readonly Compute[], fleet: readonly Compute[]) {
  const selected = new Set(computes.map(({ computeId }) => computeId));
  const projects = [...new Set(computes.map(({ projectId }) => projectId))];
  const isWhole = fleet.every(({ projectId, computeId }) => !projects.includes(projectId) || selected.has(computeId));
  if (!isWhole) return { computes: [...selected].toSorted(ascending) };
  return { projects: projects.map((projectId) => nameOf(projectId, fleet)).toSorted(ascending) };
}

/** Returns the name of a project if it is unique and no glob, else its id. */
function nameOf(projectId: string, fleet: readonly Compute[]): string {
  const name = fleet.find((compute) => compute.projectId === projectId)?.projectName ?? projectId;
  const isUnique = fleet.every(
    (compute) => compute.projectId === projectId || ![compute.projectName, compute.projectId].includes(name),
  );
  return isUnique && /^\w[\w .-]*$/.test(name) ? name : projectId;
}

function ownerInName(owner: string): string {
  return (
    owner
      .toLowerCase()
      .replaceAll(/[^a-z0-9]+/g, '-')
      .replaceAll(/^-|-$/g, '') || 'owner'
  );
}
