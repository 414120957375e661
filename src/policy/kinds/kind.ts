import type { z } from 'zod';
import type { Policy } from '../../domain/policy/policy.ts';
import type { PolicyBase } from '../../domain/policy/policy-base.ts';
import type { TimeSpec } from '../../domain/time/time-spec.ts';
import type { Path } from '../read-yaml.ts';
import type { FileContext } from '../to-domain.ts';

/** Times of a policy that are written together. */
export interface WrittenTimes {
  specs: readonly TimeSpec[];
  at: Path;
}

/** A value that a policy may set, and its place in the file: a size of this maximum at least, or a timeout between two ends. */
export type WrittenSetting =
  | { field: 'size'; at: Path; maxCu: number }
  /** Canonical seconds: −1 never, which is longer than any other. */
  | { field: 'suspend_after'; at: Path; minSeconds: number; maxSeconds: number };

interface Parts<Written, P extends PolicyBase> {
  /** The written form; its descriptions are docs/policy-reference.md. */
  schema: z.ZodType<Written> & z.ZodObject;
  /** A checked policy as the domain knows it: times with their zones, absent fields absent. */
  toDomain(written: Written, context: FileContext): P;
  /** Every time that the policy names. Lints look at them. */
  times(policy: P): readonly WrittenTimes[];
  /** Everything that it may set. Lints compare it with plans of accounts and with sources. */
  settings(policy: P): readonly WrittenSetting[];
  /** True if it leaves a field to others where it does not raise it. */
  onlyRaises: boolean;
}

/** The text half of a kind of policy: how it is read, and where its values are written. */
export interface KindText<P extends PolicyBase> extends Omit<Parts<never, P>, 'schema' | 'toDomain'> {
  schema: z.ZodObject;
  read(entry: unknown): KindResult<P>;
}

export type KindResult<P extends PolicyBase = Policy> =
  | { ok: true; enabled: boolean; toDomain: (context: FileContext) => P }
  | { ok: false; issues: z.core.$ZodIssue[] };

/** One kind, of the parts that its file gives. */
export function kindText<Written extends { enabled: boolean }, P extends PolicyBase>(
  parts: Parts<Written, P>,
): KindText<P> {
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
