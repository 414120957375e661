import { type Finding, type LintInput, lintPolicySet } from '../../src/policy/lint/lint.ts';
import { parsePolicyFiles } from '../../src/policy/parse.ts';
import { at } from '../support/builders.ts';

/** The instant from which on these tests look: a Saturday, winter in Berlin. */
export const NOW = at('2026-11-21T00:00:00Z');

const COUNTS = {
  ...{ name: 'counts', file: 'ebb.yaml', everyMs: 60_000 },
  ...{ from: 'prometheus', url: 'http://prometheus:9090', query: 'x{id="$compute"}' },
} as const;

/** What lint finds in one file of policies; the file must be valid. */
export function findingsIn(text: string, input: Partial<LintInput> = {}): Finding[] {
  // What policies count by is defined elsewhere, unless the text does.
  const sources = text.includes('sources:') ? new Map() : new Map([['counts', COUNTS]]);
  const parsed = parsePolicyFiles([{ path: 'web.yaml', text }], { knownSources: { sources, allowedOrigins: [] } });
  if (!parsed.ok) throw new Error(parsed.problems.map(({ line, message }) => `${line}: ${message}`).join('\n'));
  const { policies, sources: known } = parsed.set;
  return lintPolicySet({ policies, sources: known, written: parsed.written, nowMs: NOW, ...input });
}

/** `line «what is underlined» severity code message` of each finding. */
export function lintsIn(text: string, input: Partial<LintInput> = {}): string[] {
  return findingsIn(text, input).map(
    ({ line, excerpt, severity, code, message }) => `${line} «${underlined(excerpt)}» ${severity} ${code} ${message}`,
  );
}

/** A file in the zone of Berlin with these policies, each a flow mapping without name and kind of its selector. */
export function file(...policies: string[]): string {
  return `version: 1\ntimezone: Europe/Berlin\npolicies:\n${policies.map((policy) => `  - { ${policy} }\n`).join('')}`;
}

/** A schedule for all projects unless it says otherwise. */
export function schedule(name: string, rest: string): string {
  const select = rest.includes('select:') ? '' : 'select: { projects: ["*"] }, ';
  const otherwise = rest.includes('otherwise:') ? '' : ', otherwise: baseline';
  return `name: ${name}, kind: schedule, ${select}${rest}${otherwise}`;
}

function underlined(excerpt: Finding['excerpt']): string | undefined {
  return excerpt?.text.slice(excerpt.from, excerpt.from + excerpt.length);
}
