import { DAY_MS } from '../../domain/time/units.ts';
import type { Engine } from '../../ports/engine.ts';

export interface StoreLimits {
  holds: number;
  freezes: number;
  approvals: number;
  historyPerCompute: number;
  /** Entries older than this are removed when later ones are added, milliseconds. */
  historyMs: number;
  /** Entries of all computes; on Postgres up to 1 % more. */
  history: number;
  historyEntryBytes: number;
  /** Audit entries older than this are removed when later ones are added, milliseconds. */
  auditMs: number;
  /** Audit entries: on Redis the maximum of each of 64 streams, on Postgres of all. */
  audit: number;
  /** Connection samples of each compute. */
  samples: number;
  /** Messages, sent or not. */
  outbox: number;
}

export const DEFAULT_LIMITS: Omit<StoreLimits, 'auditMs' | 'audit'> = {
  holds: 10_000,
  freezes: 1000,
  approvals: 100,
  // At most 200 KB a compute, and 50 MB in all; 300 bytes an entry are usual.
  historyPerCompute: 200,
  historyMs: 90 * DAY_MS,
  history: 50_000,
  historyEntryBytes: 1024,
  samples: 32,
  // Usually 500 bytes each, at most 4 KB, or 150 KB for the few that list coming changes. Sent entries lose their text.
  outbox: 10_000,
};

/** Limits of the audit depend on the engine; docs/benchmarks.md has the bytes. */
export function limitsOf(engine: Engine): StoreLimits {
  if (engine.kind === 'redis') return { ...DEFAULT_LIMITS, auditMs: 30 * DAY_MS, audit: 50_000 };
  const audit = engine.name === 'embedded' ? 50_000 : Number.MAX_SAFE_INTEGER;
  return { ...DEFAULT_LIMITS, auditMs: 366 * DAY_MS, audit };
}
