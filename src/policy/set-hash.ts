import { createHash } from 'node:crypto';
import type { ConnectionSource } from '../domain/connection-source.ts';
import type { Policy } from '../domain/policy.ts';

/** Identifies what policies mean: where they are written, and how, does not matter; their order does, that of sources doesn't. */
export function hashPolicies(policies: readonly Policy[], sources: ReadonlyMap<string, ConnectionSource>): string {
  const meaning = policies.map(({ file: _file, ...policy }) => canonical(policy));
  if (sources.size === 0) return digest(JSON.stringify(meaning));
  const counted = [...sources].sort(([a], [b]) => (a < b ? -1 : 1)).map(([, { file: _file, ...source }]) => source);
  return digest(JSON.stringify([meaning, counted.map(canonical)]));
}

const knownDigests = new WeakMap<readonly number[], string>();

/** Keys in one order. The days of a calendar, hundreds for each window that names it, are hashed once for all. */
function canonical(value: unknown): unknown {
  if (isDays(value)) return digestOfDays(value);
  if (Array.isArray(value)) return value.map(canonical);
  if (typeof value !== 'object' || value === null) return value;
  const entries = Object.entries(value).filter(([, part]) => part !== undefined);
  return Object.fromEntries(entries.sort(([a], [b]) => (a < b ? -1 : 1)).map(([key, part]) => [key, canonical(part)]));
}

function isDays(value: unknown): value is number[] {
  return Array.isArray(value) && value.length > 7 && value.every((part) => typeof part === 'number');
}

function digestOfDays(days: readonly number[]): string {
  const known = knownDigests.get(days) ?? digest(days.join());
  knownDigests.set(days, known);
  return known;
}

function digest(text: string): string {
  return createHash('sha256').update(text).digest('hex');
}
