import type { Path } from './read-yaml.ts';
import type { FileReader } from './reader.ts';
import { didYouMean } from './suggest.ts';

/**
 * Reports names of groups and calendars that the file does not define. It looks at the document itself, so that other
 * problems of a policy don't hide it.
 */
export function reportUnknownNames(reader: FileReader, policy: Path): void {
  checkName(reader, [...policy, 'select'], 'groups', 'group');
  const windows = reader.document.valueAt([...policy, 'windows']);
  if (!Array.isArray(windows)) return;
  for (const index of windows.keys()) {
    for (const key of ['only', 'except']) {
      const at = [...policy, 'windows', index, key];
      const names = reader.document.valueAt(at);
      if (!Array.isArray(names)) continue;
      for (const place of names.keys()) checkName(reader, [...at, place], 'calendars', 'calendar');
    }
  }
}

function checkName({ document, report }: FileReader, at: Path, definedUnder: string, what: string): void {
  const name = document.valueAt(at);
  if (typeof name !== 'string' || document.has([definedUnder, name])) return;
  const defined = document.valueAt([definedUnder]);
  const names = typeof defined === 'object' && defined !== null ? Object.keys(defined) : [];
  const list =
    names.length > 0
      ? `; "${definedUnder}" has ${names.slice(0, 20).join(', ')}`
      : `; this file has no "${definedUnder}"`;
  const message = `no ${what} is named ${JSON.stringify(name.slice(0, 60))}${didYouMean(name, names) || list}`;
  report(document.spanOf(at), 'value', message);
}
