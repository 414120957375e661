import { recommendFacts as factsOf, type PastCompute } from '../../app/recommend/facts.ts';
import { printable } from '../../common/safe-text.ts';
import { readFacts } from '../../compose/situation.ts';
import type { Hold } from '../../domain/overrides/holds.ts';
import { type CompiledPolicies, compilePolicies } from '../../domain/policy/compiled-policies.ts';
import type { RecommendFacts } from '../../domain/recommend/finding.ts';
import type { ComputeRecord } from '../../domain/records/compute-record.ts';
import { loadPolicySet } from '../../policy/load.ts';
import { formatProblem } from '../../policy/problem.ts';
import { accountFor } from '../../settings/accounts.ts';
import type { Settings } from '../../settings/settings.ts';
import { unreadText } from '../not-planned.ts';
import { type ReadPolicies, validPoliciesOf } from '../or-fail.ts';
import { writeNotes } from '../output.ts';

interface Readable extends Pick<ReadPolicies, 'broken'> {
  /** Undefined if files that belong to no team can't be read. */
  policies: CompiledPolicies | undefined;
  /** False if a policy file can't be read. True if there are no files. */
  isComplete: boolean;
}

/** Reads the policies. Prints a note about those that can't be read, since it is not known what they set. */
export async function readablePolicies(settings: Settings): Promise<Readable> {
  const loaded = await loadPolicySet({ paths: settings.policies, settings, isComplete: true });
  if (!loaded.ok && !loaded.others) {
    const [problem] = loaded.problems.filter(({ code }) => code !== 'files' && code !== 'no-files');
    if (problem) {
      const { excerpt: _line, ...oneLine } = problem;
      writeNotes({ notes: [`policies can't be read, so what they set is not known (${formatProblem(oneLine)})`] });
    }
    return { policies: undefined, broken: new Map(), isComplete: !problem };
  }
  const { policies, broken } = validPoliciesOf(loaded, settings);
  writeNotes({ notes: [...broken].map(([team, problem]) => printable(`${team}: ${unreadText(problem)}`)) });
  return { policies: compilePolicies(policies), broken, isComplete: broken.size === 0 };
}

export function recommendFacts(
  settings: Settings,
  past: readonly PastCompute[],
  options: {
    policies: CompiledPolicies | undefined;
    holds?: readonly Hold[];
    records?: ReadonlyMap<string, Partial<ComputeRecord>> | undefined;
  },
): Iterable<RecommendFacts> {
  const { policies, holds = [], records } = options;
  const { owners, coldStartWorthMs, accounts } = settings;
  const profileOf = (account: string) => {
    const profile = accountFor(accounts, account)?.profile ?? accounts[0]?.profile;
    if (profile === undefined) throw new Error('settings without an account');
    return profile;
  };
  const recordOf = (computeId: string) => records?.get(computeId);
  return factsOf(past, { owners, coldStartWorthMs, policies, holds, profileOf, recordOf });
}

/** Reads the stored facts that recommendations need: holds, which decide fields, and records, which have the findings of guards. */
export async function storedFacts(settings: Settings, nowMs: number) {
  const { facts, notes } = await readFacts(settings, ['holds', 'records'], nowMs);
  return { holds: facts?.holds ?? [], records: facts?.records, notes };
}
