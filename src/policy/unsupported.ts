import type { AnyPolicy } from '../domain/policy-kinds.ts';
import type { FileReader } from './reader.ts';

/** A part of the language that is read and checked, but that nothing acts on yet. */
export type Unsupported = { kind: AnyPolicy['kind']; message: string } | { key: string; message: string };

/**
 * What enabled policies may not use yet: whoever makes it work removes its line. Keys are paths from the top of a file,
 * with `*` for any name or place.
 */
export const UNSUPPORTED: readonly Unsupported[] = [
  { kind: 'headroom', message: 'headroom policies are not supported yet; set enabled: false' },
  { kind: 'limits', message: 'limits policies are not supported yet; set enabled: false' },
  { kind: 'restart', message: 'restart policies are not supported yet; set enabled: false' },
  { kind: 'freeze', message: 'freeze policies are not supported yet; set enabled: false' },
  { key: 'policies.*.disruption', message: 'disruption is not supported yet' },
  { key: 'policies.*.manual_changes', message: 'manual_changes is not supported yet' },
  { key: 'policies.*.windows.*.ready', message: 'ready is not supported yet' },
  { key: 'policies.*.select.branch_roles', message: 'branch_roles is not supported yet' },
  { key: 'groups.*.branch_roles', message: 'branch_roles is not supported yet' },
];

/** Reports everything in a document that is not supported yet, except in policies that are not enabled. */
export function reportUnsupported({ document, report }: FileReader, unsupported: readonly Unsupported[]): void {
  const isDisabled = (path: readonly PropertyKey[]) =>
    path[0] === 'policies' && path.length > 1 && document.valueAt([...path.slice(0, 2), 'enabled']) === false;
  for (const entry of unsupported) {
    const pattern = 'key' in entry ? entry.key : 'policies.*.kind';
    for (const path of pathsOf(document.value, pattern.split('.'))) {
      if (isDisabled(path)) continue;
      if ('key' in entry) report(document.keySpanOf(path), 'not-supported', entry.message);
      else if (document.valueAt(path) === entry.kind) report(document.spanOf(path), 'not-supported', entry.message);
    }
  }
}

/** Every path in a value that a pattern means. */
function pathsOf(value: unknown, [step, ...rest]: readonly string[]): PropertyKey[][] {
  if (step === undefined) return [[]];
  if (typeof value !== 'object' || value === null) return [];
  const all = Array.isArray(value) ? [...value.keys()] : Object.keys(value);
  const keys: PropertyKey[] = step === '*' ? all : [step].filter((key) => Object.hasOwn(value, key));
  return keys.flatMap((key) => pathsOf(Reflect.get(value, key), rest).map((path) => [key, ...path]));
}
