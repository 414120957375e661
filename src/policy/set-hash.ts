import { createHash } from 'node:crypto';
import type { Policy } from '../domain/policy.ts';

/** Identifies what policies mean: where they are written, and how, does not matter; their order does. */
export function hashPolicies(policies: readonly Policy[]): string {
  const meaning = policies.map(({ file: _file, ...policy }) => canonical(policy));
  return createHash('sha256').update(JSON.stringify(meaning)).digest('hex');
}

function canonical(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(canonical);
  if (typeof value !== 'object' || value === null) return value;
  const entries = Object.entries(value).filter(([, part]) => part !== undefined);
  return Object.fromEntries(entries.sort(([a], [b]) => (a < b ? -1 : 1)).map(([key, part]) => [key, canonical(part)]));
}
