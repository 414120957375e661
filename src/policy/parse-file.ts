import type { Policy } from '../domain/policy.ts';
import { POLICY_LIMITS } from './limits.ts';
import type { PolicyProblem, ProblemCode } from './problem.ts';
import { type Path, readYaml, type YamlDocument } from './read-yaml.ts';
import { POLICY_KINDS, PolicyFileHead } from './schema/policy-file.ts';
import { placeIssues } from './schema-problems.ts';
import { problemAt, type Span, sourceText } from './source-text.ts';
import { didYouMean } from './suggest.ts';
import { type FileContext, toSchedule } from './to-domain.ts';

/** A name that the file gives to a policy, and a way to report a problem at it. */
export interface GivenName {
  name: string;
  problem: (code: ProblemCode, message: string) => PolicyProblem;
}

export interface ParsedFile {
  /** The enabled policies; not to be used when there are problems. */
  policies: Policy[];
  names: GivenName[];
  problems: PolicyProblem[];
  warnings: PolicyProblem[];
}

interface FileReader {
  document: YamlDocument;
  report(span: Span, code: ProblemCode, message: string): void;
}

/** Reads one policy file and finds everything that is wrong with it. */
export function parsePolicyFile(path: string, text: string): ParsedFile {
  const nothing = { policies: [], names: [], warnings: [] };
  const source = sourceText(path, text);
  const yaml = readYaml(source);
  if (!yaml.ok) return { ...nothing, problems: yaml.problems };
  const problems: PolicyProblem[] = [];
  const reader: FileReader = {
    document: yaml.document,
    report: (span, code, message) => {
      if (problems.length < POLICY_LIMITS.problemsPerFile) problems.push(problemAt(source, span, code, message));
    },
  };
  const head = PolicyFileHead.safeParse(yaml.document.value);
  reportIssues(reader, head, []);
  const entries = policyEntries(reader);
  const context: FileContext = { file: path, timezone: head.data?.timezone ?? 'UTC', owner: head.data?.owner };
  const policies = entries.flatMap((entry, index) => parsePolicy(reader, entry, ['policies', index], context));
  const names = entries.flatMap((_entry, index): GivenName[] => {
    const name = yaml.document.valueAt(['policies', index, 'name']);
    if (typeof name !== 'string') return [];
    const span = yaml.document.spanOf(['policies', index, 'name']);
    return [{ name, problem: (code, message) => problemAt(source, span, code, message) }];
  });
  const warnings =
    head.success && entries.length === 0
      ? [problemAt(source, yaml.document.spanOf(['policies']), 'structure', 'no policies in this file')]
      : [];
  return { policies, names, problems, warnings };
}

function policyEntries({ document, report }: FileReader): readonly unknown[] {
  const entries = document.valueAt(['policies']);
  if (!Array.isArray(entries)) return [];
  if (entries.length <= POLICY_LIMITS.policies) return entries;
  report(document.keySpanOf(['policies']), 'limit', `more than ${POLICY_LIMITS.policies} policies`);
  return [];
}

function parsePolicy(reader: FileReader, entry: unknown, path: Path, context: FileContext): Policy[] {
  const { document, report } = reader;
  if (typeof entry !== 'object' || entry === null || Array.isArray(entry)) {
    report(document.spanOf(path), 'value', 'expected a policy: a mapping with name, kind and select');
    return [];
  }
  const kinds = Object.keys(POLICY_KINDS);
  const kind: unknown = Reflect.get(entry, 'kind');
  if (kind === 'schedule') {
    const parsed = POLICY_KINDS.schedule.safeParse(entry);
    reportIssues(reader, parsed, path);
    return parsed.success && parsed.data.enabled ? [toSchedule(parsed.data, context)] : [];
  }
  if (kind === 'headroom') {
    const parsed = POLICY_KINDS.headroom.safeParse(entry);
    reportIssues(reader, parsed, path);
    if (Reflect.get(entry, 'enabled') !== false) {
      report(
        document.spanOf([...path, 'kind']),
        'not-supported',
        'headroom policies are not supported yet; set enabled: false',
      );
    }
    return [];
  }
  const expectedKinds = `expected ${kinds.join(' or ')}`;
  if (kind === undefined)
    report(document.keySpanOf([...path, 'kind']), 'missing-key', `missing key "kind"; ${expectedKinds}`);
  else report(document.spanOf([...path, 'kind']), 'value', kindMessage(kind, kinds));
  return [];
}

const LATER_KINDS = ['limits', 'restart', 'freeze'];

function kindMessage(kind: unknown, kinds: readonly string[]): string {
  const text = String(kind);
  if (LATER_KINDS.includes(text)) return `${text} policies are not supported yet`;
  return `expected ${kinds.join(' or ')}${didYouMean(text, kinds)}`;
}

function reportIssues(
  { document, report }: FileReader,
  parsed: { error?: { issues: readonly unknown[] } | undefined },
  at: Path,
): void {
  const issues = (parsed.error?.issues ?? []) as Parameters<typeof placeIssues>[1];
  for (const { span, code, message } of placeIssues(document, issues, at)) report(span, code, message);
}
