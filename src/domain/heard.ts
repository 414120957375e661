import { compareOpinions } from './opinion.ts';
import type { LimitsPolicy, Policy } from './policy.ts';
import { ruleOf } from './rules/rules.ts';
import type { Need, RestartWindow, Statement, Statements } from './statement.ts';

/** What computes that the same policies select hear at an instant. */
export interface Heard {
  all: Statements;
  /** Of the policies that may write; the same object as `all` where none only observes. */
  enforced: Statements;
  /** False if no policy selects them. */
  matched: boolean;
  /** A restart may be made, by the policy of the highest priority that says so; of one that may write, if there is one. */
  restart?: RestartWindow;
  /** Those of the policies that may write. */
  hardLimits: readonly LimitsPolicy[];
}

/** What all policies say at an instant (milliseconds since the epoch). */
export function statementsAt(policies: readonly Policy[], instantMs: number): Statement[] {
  return policies.flatMap((policy, index) => ruleOf(policy).statementsAt(policy, index, instantMs));
}

/** Of all that is said, what those hear whom the policies at these places select. */
export function hear(statements: readonly Statement[], policyIndexes: readonly number[]): Heard {
  const selecting = new Set(policyIndexes);
  const heard = statements.filter(({ policyIndex }) => selecting.has(policyIndex));
  const enforcedOnly = heard.filter(({ policy }) => policy.mode === 'enforce');
  const all = sortOut(heard);
  const enforced = enforcedOnly.length === heard.length ? all : sortOut(enforcedOnly);
  const restart = enforced.restarts[0] ?? all.restarts[0];
  const hardLimits = enforced.bounds.map(({ policy }) => policy).filter(({ hard }) => hard);
  return { all, enforced, matched: policyIndexes.length > 0, hardLimits, ...(restart && { restart }) };
}

function sortOut(statements: readonly Statement[]): Statements {
  const said = <S extends Statement['says']>(says: S) =>
    statements.filter((statement): statement is Extract<Statement, { says: S }> => statement.says === says);
  return {
    opinions: said('values').sort(compareOpinions),
    bounds: said('bounds'),
    needs: said('need').sort(byImportance),
    restarts: said('restart').sort(byImportance),
    freezes: said('freeze'),
  };
}

function byImportance(a: RestartWindow | Need, b: RestartWindow | Need): number {
  return b.policy.priority - a.policy.priority || b.policyIndex - a.policyIndex;
}
