import { Command } from 'commander';
import { refusedBranchNotes } from '../app/fleet/branches.ts';
import { printable } from '../common/safe-text.ts';
import { type Compute, FIELD_GROUPS, type FieldGroup } from '../domain/compute/compute.ts';
import type { CompiledPolicies } from '../domain/policy/compiled-policies.ts';
import { ruleOf } from '../domain/policy/kinds/kinds.ts';
import type { Policy } from '../domain/policy/policy.ts';
import { type CommonFlags, FLAGS } from './flags.ts';
import { groupAlike } from './group-alike.ts';
import { notPlannedNotes } from './not-planned.ts';
import { writeErrLine, writeJson, writeNotes, writeOut } from './output.ts';

const EXAMPLES = `
Examples:
  $ ebb terraform                                    for the whole fleet; reads the API, so NEON_API_KEY is enough
  $ ebb terraform --fleet fleet.yaml --policies policies/web.yaml
  $ ebb terraform --json | jq -r '.[] | "\\(.compute_id) \\(.ignore_changes | join(" "))"'

For each compute it lists only what the policies that select it may ever change, including policies that only observe.
Terraform can manage a compute without such a policy completely: docs/terraform.md.
Exit code 0: success, even if there is nothing to ignore. 1: an error, or a part of the fleet that can't be read.`;

export function terraformCommand(): Command {
  return new Command('terraform')
    .option(...FLAGS.config)
    .option(...FLAGS.apiUrl)
    .option(...FLAGS.policies)
    .option(...FLAGS.fleet)
    .option(...FLAGS.json)
    .addHelpText('after', EXAMPLES)
    .action(terraform);
}

async function terraform(flags: CommonFlags): Promise<void> {
  const [{ compilePolicies }, { settingsAndPolicies }, { readFleetOrFail }] = await Promise.all([
    import('../domain/policy/compiled-policies.ts'),
    import('./or-fail.ts'),
    import('./read-fleet.ts'),
  ]);
  const { settings, policies: set, broken } = await settingsAndPolicies(flags);
  const policies = compilePolicies(set);
  // Branches are always read: people know computes by the names of their branches.
  const from = { fleetFile: flags.fleet, live: true, nowMs: Date.now(), readBranches: true, acceptsMissing: true };
  const { computes, missing, branchNamesRefused } = await readFleetOrFail({ settings, ...from });
  const ignored = ignoredOf(computes, policies);
  const unreadNotes = notPlannedNotes(computes, { policies, broken }, 'may have more to ignore');
  const refused = policies.selectsByBranch ? refusedBranchNotes(branchNamesRefused) : [];
  writeNotes({ notes: [...refused, ...unreadNotes], missing });
  if (ignored.length === 0)
    writeErrLine('no policy changes size or timeout of any compute: Terraform has nothing to ignore');
  if (flags.json) writeJson(ignoredJson(ignored));
  else if (ignored.length > 0) writeOut(`${hclOf(ignored)}\n`);
}

interface Ignored {
  compute: Compute;
  /** The policies that may change it, in the order of the policy set. Policies that only observe are included. */
  policies: readonly Policy[];
  /** Attributes of the provider's resource for a compute; never empty. */
  attributes: readonly string[];
}

/** The attributes of the provider kislerdm/neon. A change of size writes both ends of the range. */
const ATTRIBUTES: Record<FieldGroup, readonly string[]> = {
  size: ['autoscaling_limit_min_cu', 'autoscaling_limit_max_cu'],
  suspend_timeout: ['suspend_timeout_seconds'],
};

/**
 * The attributes that policies may change, for each compute of any age. Computes are left out if every policy that selects them changes
 * neither size nor timeout, such as a freeze.
 */
function ignoredOf(computes: readonly Compute[], { set, selecting }: CompiledPolicies): Ignored[] {
  const groupsOf = new Map(set.policies.map((policy) => [policy, ruleOf(policy).mayChange(policy)]));
  const mayChange = (policy: Policy) => groupsOf.get(policy) ?? [];
  return computes.flatMap((compute) => {
    const places = new Set(selecting(compute));
    const policies = set.policies.filter((policy, place) => places.has(place) && mayChange(policy).length > 0);
    const changed = new Set(policies.flatMap(mayChange));
    const attributes = FIELD_GROUPS.filter((group) => changed.has(group)).flatMap((group) => ATTRIBUTES[group]);
    return attributes.length > 0 ? [{ compute, policies, attributes }] : [];
  });
}

function ignoredJson(all: readonly Ignored[]) {
  return all.map(({ compute, policies, attributes }) => ({
    project_id: compute.projectId,
    compute_id: compute.computeId,
    branch: compute.branchName ?? compute.branchId,
    policies: policies.map(({ name }) => name),
    ignore_changes: attributes,
  }));
}

/** A block for each compute, grouped by project. Comments above the block name the compute. */
function hclOf(all: readonly Ignored[]): string {
  const projects = groupAlike(all, ({ compute }) => compute.projectId);
  return [headOf(all), ...projects.map(({ members }) => projectOf(members))].join('\n\n');
}

function headOf(all: readonly Ignored[]): string {
  const hasPassive = all.some(({ policies }) => policies.some((policy) => whyPassive(policy) !== undefined));
  return [
    '# What ebb may change: each block belongs in the resource of its compute.',
    ...(hasPassive ? ['# Policies that only observe or advise count, too: somebody may let them enforce later.'] : []),
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
      ? ['# If the neon_project creates it, put this there instead: ignore_changes = [default_endpoint_settings]']
      : []),
    'lifecycle {',
    '  ignore_changes = [',
    ...attributes.map((attribute) => `    ${attribute},`),
    '  ]',
    '}',
  ].join('\n');
}

/** A comment ends with its line, so a name must not contain a line break. */
function comment(text: string): string {
  return `# ${printable(text)}`;
}

function named(id: string, name: string | undefined): string {
  return name === undefined || name === '' || name === id ? id : `${id} (${name})`;
}

function policyOf(policy: Policy): string {
  const passive = whyPassive(policy);
  return passive === undefined ? policy.name : `${policy.name} (${passive})`;
}

/** The reason why a policy writes nothing; undefined if it writes. */
function whyPassive(policy: Policy): string | undefined {
  if (policy.mode === 'observe') return 'only observes';
  return ruleOf(policy).need(policy)?.act === 'advise' ? 'only advises' : undefined;
}

/** True if the compute may be the one that came with its project: the read-write one of the default branch. The roles of a branch may be unknown. */
function mayBeFirst({ type, branchRoles }: Compute): boolean {
  return type === 'read_write' && (branchRoles === undefined || branchRoles.includes('default'));
}
