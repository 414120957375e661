/** Separates and describes the computes of teams whose policy files can't be read. */
import { countedComputes } from '../common/names.ts';
import { printable } from '../common/safe-text.ts';
import type { Compute } from '../domain/compute/compute.ts';
import { groupBy } from '../domain/grouping.ts';
import type { CompiledPolicies } from '../domain/policy/compiled-policies.ts';
import { unloadedTeamOf } from '../domain/policy/team-parts.ts';

/** Notes cut problems to this length. Problems are printed in full when the files are read. */
const MAX_CHARACTERS = 240;

/** What notes say about computes whose policies can't be read, if they are calculated as under a freeze. */
export const AS_UNCHANGED = 'counted as unchanged';

export interface NotPlanned {
  team: string;
  /** The first problem of its files, `FILE:LINE:COLUMN: MESSAGE`. */
  problem: string;
  /** The ids of its computes. */
  computes: string[];
}

/**
 * Separates the computes. `notPlanned`, sorted by team: those of teams whose files can't be read in at least one of the sets. `planned`: the
 * others. `broken` has the first problem of each such team.
 */
export function splitPlanned<T extends { compute: Compute }>(
  all: readonly T[],
  policies: readonly Pick<CompiledPolicies, 'set' | 'selecting'>[],
  broken: ReadonlyMap<string, string>,
): { planned: T[]; notPlanned: NotPlanned[] } {
  const byTeam = groupBy(all, ({ compute }) => policies.flatMap((set) => unloadedTeamOf(set, compute) ?? [])[0]);
  const notPlanned = [...byTeam].flatMap(([team, ones]) => {
    const computes = ones.map(({ compute }) => compute.computeId);
    return team === undefined ? [] : [{ team, problem: broken.get(team) ?? '', computes }];
  });
  return {
    planned: byTeam.get(undefined) ?? [],
    notPlanned: notPlanned.toSorted((a, b) => a.team.localeCompare(b.team)),
  };
}

/** `team-dev: 60 computes not planned: its policies can't be read (policies/dev/hours.yaml:4:9: …)`; `treatment` may replace `not planned`. */
export function notPlannedLines(all: readonly NotPlanned[], treatment = 'not planned'): string[] {
  return all.map(({ team, problem, computes }) =>
    printable(`${team}: ${countedComputes(computes.length)} ${treatment}: ${unreadText(problem)}`),
  );
}

/** {@link notPlannedLines} for those of the computes that are not planned. */
export function notPlannedNotes(
  computes: readonly Compute[],
  { policies, broken }: { policies: Pick<CompiledPolicies, 'set' | 'selecting'>; broken: ReadonlyMap<string, string> },
  treatment: string,
): string[] {
  const all = computes.map((compute) => ({ compute }));
  return notPlannedLines(splitPlanned(all, [policies], broken).notPlanned, treatment);
}

/** `its policies can't be read (FILE:LINE:COLUMN: MESSAGE)`. */
export function unreadText(problem: string): string {
  const shown = problem.length > MAX_CHARACTERS ? `${problem.slice(0, MAX_CHARACTERS)}…` : problem;
  return `its policies can't be read (${shown})`;
}

/** An additional field of JSON documents; absent if the policies of all computes are known. */
export function notPlannedJson(all: readonly NotPlanned[]): { not_planned?: readonly NotPlanned[] } {
  return all.length === 0 ? {} : { not_planned: all };
}

/** An additional field of JSON documents: a line for each fact that is missing; absent if there is none. */
export function missingJson(missing: readonly string[]): { missing?: readonly string[] } {
  return missing.length === 0 ? {} : { missing };
}
