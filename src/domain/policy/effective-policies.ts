import type { Directive, Directives, Says } from './directive.ts';
import type { Policy } from './policy.ts';
import { compareProposals } from './proposed-value.ts';

/** What computes that the same policies select hear at an instant. */
export interface EffectivePolicies {
  all: Directives;
  /** Of the policies that may write; the same object as `all` where none only observes. */
  enforced: Directives;
  /** False if no policy selects them. */
  matched: boolean;
  /** Policies of which it is not known whether they select them. */
  unknown: readonly Policy[];
}

/** What those hear whom the policies at these places select, of all that these say. */
export function effectivePolicies(
  effective: readonly Directive[],
  policyIndexes: readonly number[],
): Omit<EffectivePolicies, 'unknown'> {
  const enforcedOnly = effective.filter(({ policy }) => policy.mode === 'enforce');
  const all = sortOut(effective);
  const enforced = enforcedOnly.length === effective.length ? all : sortOut(enforcedOnly);
  return { all, enforced, matched: policyIndexes.length > 0 };
}

function sortOut(directives: readonly Directive[]): Directives {
  const said = <S extends Says>(says: S) =>
    directives.filter((directive): directive is Extract<Directive, { says: S }> => directive.says === says);
  return {
    values: said('values').sort(compareProposals),
    bounds: said('bounds'),
    need: said('need').sort(byImportance),
    restart: said('restart').sort(byImportance),
    freeze: said('freeze'),
  };
}

function byImportance(a: Directive, b: Directive): number {
  return b.policy.priority - a.policy.priority || b.policyIndex - a.policyIndex;
}
