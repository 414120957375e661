import { printable } from '../../common/safe-text.ts';
import type { Compute } from '../../domain/compute/compute.ts';
import { ruleOf } from '../../domain/policy/kinds/kinds.ts';
import type { Policy } from '../../domain/policy/policy.ts';
import type { Ignored } from './ignored.ts';

/** Blocks for the resources of the computes, by project, each below comments that say whose it is. */
export function hclOf(all: readonly Ignored[]): string {
  const projects = new Map<string, Ignored[]>();
  for (const one of all) {
    const ofProject = projects.get(one.compute.projectId);
    if (ofProject) ofProject.push(one);
    else projects.set(one.compute.projectId, [one]);
  }
  return [headOf(all), ...[...projects.values()].map(projectOf)].join('\n\n');
}

function headOf(all: readonly Ignored[]): string {
  const somethingIdles = all.some(({ policies }) => policies.some((policy) => idleness(policy) !== undefined));
  return [
    '# What ebb may change: each block belongs into the resource of its compute.',
    ...(somethingIdles
      ? ['# Policies that only observe or advise count, too: one day they may be told to do what they say.']
      : []),
  ].join('\n');
}

function projectOf(computes: readonly Ignored[]): string {
  const [title] = computes.map(({ compute }) => comment(`Project ${named(compute.projectId, compute.projectName)}`));
  return [title, ...computes.map(blockOf)].join('\n\n');
}

function blockOf({ compute, policies, attributes }: Ignored): string {
  const { computeId, branchId, branchName } = compute;
  return [
    comment(`neon_endpoint ${computeId}, branch ${named(branchId, branchName)}`),
    comment(`Policies: ${policies.map(policyOf).join(', ')}`),
    ...(mayBeFirst(compute)
      ? ['# If the neon_project makes it, there instead: ignore_changes = [default_endpoint_settings]']
      : []),
    'lifecycle {',
    '  ignore_changes = [',
    ...attributes.map((attribute) => `    ${attribute},`),
    '  ]',
    '}',
  ].join('\n');
}

/** A comment ends with its line, and no name from outside may end it. */
function comment(text: string): string {
  return `# ${printable(text)}`;
}

function named(id: string, name: string | undefined): string {
  return name === undefined || name === '' || name === id ? id : `${id} (${name})`;
}

function policyOf(policy: Policy): string {
  const idles = idleness(policy);
  return idles === undefined ? policy.name : `${policy.name} (${idles})`;
}

/** Why a policy writes nothing, if it is so. */
function idleness(policy: Policy): string | undefined {
  if (policy.mode === 'observe') return 'only observes';
  return ruleOf(policy).need(policy)?.act === 'advise' ? 'only advises' : undefined;
}

/** The first compute of a project is the one for writing on the default branch. Where roles are not known, any could be it. */
function mayBeFirst({ type, branchRoles }: Compute): boolean {
  return type === 'read_write' && (branchRoles === undefined || branchRoles.includes('default'));
}
