import type { z } from 'zod';
import type { Policy } from '../../domain/policy/policy.ts';
import type { PolicyBase } from '../../domain/policy/policy-base.ts';
import type { TimeSpec } from '../../domain/time/time-spec.ts';
import type { Path } from '../read-yaml.ts';
import type { FileContext } from '../to-domain.ts';

/** The times of one `at:`. */
export interface WrittenTimes {
  specs: readonly TimeSpec[];
  at: Path;
}

/** A value that a policy may set, with its place. */
export type WrittenSetting =
  /** A size with at least this maximum. */
  | { field: 'size'; at: Path; maxCu: number }
  /** A range of timeouts in canonical seconds; −1 is never, the longest. */
  | { field: 'suspend_after'; at: Path; minSeconds: number; maxSeconds: number };

interface KindParts<Written, P extends PolicyBase> {
  /** The YAML form. docs/policy-reference.md is generated from its descriptions. */
  schema: z.ZodType<Written> & z.ZodObject;
  /** Turns the parsed YAML into the domain's policy: its times have zones, and absent keys stay absent. */
  toDomain(written: Written, context: FileContext): P;
  /** All times of the policy, for lints. */
  times(policy: P): readonly WrittenTimes[];
  /** All values that the policy may set, for lints. */
  settings(policy: P): readonly WrittenSetting[];
  /** True if the policy only raises values of other policies. */
  onlyRaises: boolean;
}

/** The syntax of a kind: parses policies, and knows the places of their values. */
export interface KindSyntax<P extends PolicyBase> extends Omit<KindParts<never, P>, 'schema' | 'toDomain'> {
  schema: z.ZodObject;
  read(entry: unknown): KindResult<P>;
}

export type KindResult<P extends PolicyBase = Policy> =
  | { ok: true; enabled: boolean; toDomain: (context: FileContext) => P }
  | { ok: false; issues: z.core.$ZodIssue[] };

export function kindSyntax<Written extends { enabled: boolean }, P extends PolicyBase>(
  parts: KindParts<Written, P>,
): KindSyntax<P> {
  const { schema, toDomain, ...places } = parts;
  return {
    ...places,
    schema,
    read(entry) {
      const parsed = schema.safeParse(entry);
      if (!parsed.success) return { ok: false, issues: parsed.error.issues };
      const written = parsed.data as Written;
      return { ok: true, enabled: written.enabled, toDomain: (context) => toDomain(written, context) };
    },
  };
}
