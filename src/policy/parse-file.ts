import { didYouMean } from '../common/names.ts';
import type { PolicyKind } from '../domain/policy/kinds/kinds.ts';
import type { Policy } from '../domain/policy/policy.ts';
import { icalReader, type ReadIcal, type ReadReferenced, readCalendar } from './calendars/read-calendar.ts';
import { KINDS } from './kinds/kinds.ts';
import { POLICY_LIMITS, whyPolicyTooCostly } from './limits.ts';
import type { PolicyProblem } from './problem.ts';
import { type Path, readYaml } from './read-yaml.ts';
import { type FileReader, fileReader, reportIssues, type WrittenPolicy } from './reader.ts';
import { LimitedKeys } from './schema/policy-base.ts';
import { PolicyFileHead } from './schema/policy-file.ts';
import { sourceText } from './source-text.ts';
import { toSource, type WrittenSource } from './sources.ts';
import { beyondTeam, qualifiedName, type Team } from './teams.ts';
import type { FileContext } from './to-domain.ts';

export interface ParsedFile {
  /** The enabled policies; incomplete if there are problems. */
  policies: Policy[];
  /** Every policy that has a name. */
  written: WrittenPolicy[];
  /** The sources that the file defines; undefined if they can't be read. */
  sources?: WrittenSource[] | undefined;
  problems: PolicyProblem[];
  warnings: PolicyProblem[];
}

interface ParseFileOptions {
  readReferenced: ReadReferenced;
  /** One reader for all files of a set. */
  readIcal?: ReadIcal;
  team?: Team | undefined;
}

const EMPTY = 'the file is empty; write "version: 1" and "policies:" (policies/ has samples), or remove the file';

/** Parses one policy file and reports all its problems. */
export function parsePolicyFile(path: string, text: string, options: ParseFileOptions): ParsedFile {
  const source = sourceText(path, text);
  const yaml = readYaml(source);
  if (!yaml.ok) return { policies: [], written: [], warnings: [], problems: yaml.problems };
  const reader = fileReader(source, yaml.document);
  if (yaml.document.value === null) {
    reader.report(yaml.document.spanOf([]), 'structure', EMPTY);
    return { policies: [], written: [], warnings: [], problems: reader.problems };
  }
  const head = PolicyFileHead.safeParse(yaml.document.value);
  reportIssues(reader, head, []);
  const { team, readIcal = icalReader(options.readReferenced) } = options;
  checkOwner(reader, team);
  const context = { ...contextOf(reader, head.data, readIcal), team, owner: team?.name ?? head.data?.owner };
  const entries = policyEntries(reader);
  const policies = entries.flatMap((entry, index) => parsePolicy(reader, entry, ['policies', index], context));
  const written = entries.flatMap((_entry, index) => writtenPolicy(reader, ['policies', index], team));
  const warnings = head.success ? warningsOf(reader, entries) : [];
  const sources = head.data && sourcesOf(reader, head.data, team);
  return { policies, written, sources, problems: reader.problems, warnings };
}

/** The owner of a team's file is the team, so that a label can't assign costs or alerts to another team. */
function checkOwner({ document, report }: FileReader, team: Team | undefined): void {
  const owner = document.valueAt(['owner']);
  if (!team || typeof owner !== 'string' || owner === team.name) return;
  report(document.spanOf(['owner']), 'team', `this file belongs to team ${team.name} of ebb.yaml; leave out owner`);
}

function sourcesOf(
  { path, document, problemAt }: FileReader,
  head: PolicyFileHead,
  team: Team | undefined,
): WrittenSource[] {
  return Object.entries(head.sources ?? {}).map(([name, written]) => ({
    name,
    source: { ...toSource(qualifiedName(team, name), path, written), ...(team && { team: team.name }) },
    problemAt: (at, code, message) => problemAt(document.keySpanOf(at), code, message),
  }));
}

function contextOf(
  reader: FileReader,
  head: PolicyFileHead | undefined,
  readIcal: ReadIcal,
): Omit<FileContext, 'team' | 'owner'> {
  const calendars = Object.entries(head?.calendars ?? {});
  if (calendars.length > POLICY_LIMITS.calendars) {
    reader.report(reader.document.keySpanOf(['calendars']), 'limit', `more than ${POLICY_LIMITS.calendars} calendars`);
    calendars.length = 0;
  }
  return {
    file: reader.path,
    timezone: head?.timezone ?? 'UTC',
    groups: new Map(Object.entries(head?.groups ?? {})),
    calendars: new Map(calendars.map(([name, calendar]) => [name, readCalendar(reader, name, calendar, readIcal)])),
  };
}

function warningsOf({ document, problemAt }: FileReader, entries: readonly unknown[]): PolicyProblem[] {
  if (entries.length > 0) return [];
  return [problemAt(document.spanOf(['policies']), 'structure', 'no policies in this file')];
}

function writtenPolicy(
  { path: file, document, problemAt }: FileReader,
  at: Path,
  team: Team | undefined,
): WrittenPolicy[] {
  const name = document.valueAt([...at, 'name']);
  if (typeof name !== 'string') return [];
  return [
    {
      name: qualifiedName(team, name),
      file,
      team: team?.name,
      at,
      valueAt: document.valueAt,
      problemAt: (path, code, message) => problemAt(document.spanOf(path), code, message),
    },
  ];
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
  const kind: unknown = Reflect.get(entry, 'kind');
  if (!isKind(kind)) {
    reportKind(reader, entry, path);
    return [];
  }
  const read = KINDS[kind].read(entry);
  if (!read.ok) reportIssues(reader, { error: read }, path);
  reportUnknownNames(reader, path);
  if (Reflect.get(entry, 'enabled') !== false)
    reportBeyondTeam(reader, { kind, entry, isValid: read.ok }, path, context);
  if (!read.ok || !read.enabled) return [];
  const policy = read.toDomain(context);
  const tooCostly = whyPolicyTooCostly(policy);
  if (tooCostly !== undefined) report(document.spanOf(path), 'limit', tooCostly);
  return [policy];
}

/** Reports where a policy exceeds the permissions of its team, also beside other problems of the policy. */
function reportBeyondTeam(
  { document, report }: FileReader,
  { kind, entry, isValid }: { kind: PolicyKind; entry: object; isValid: boolean },
  path: Path,
  { team, groups }: FileContext,
): void {
  if (!team) return;
  const { select, priority } = LimitedKeys.parse(entry);
  const keys = {
    kind,
    // Another key may have been meant as the priority.
    priority: priority ?? (isValid ? 0 : undefined),
    select: typeof select === 'string' ? groups.get(select) : select,
  };
  for (const { at, message } of beyondTeam(keys, team)) report(document.spanOf([...path, ...at]), 'team', message);
}

function isKind(kind: unknown): kind is keyof typeof KINDS {
  return typeof kind === 'string' && Object.hasOwn(KINDS, kind);
}

function reportKind({ document, report }: FileReader, entry: object, path: Path): void {
  const kinds = Object.keys(KINDS);
  const kind: unknown = Reflect.get(entry, 'kind');
  const wanted = `expected one of ${kinds.join(', ')}`;
  const at = [...path, 'kind'];
  if (kind !== undefined) report(document.spanOf(at), 'value', `${wanted}${didYouMean(String(kind), kinds)}`);
  const misspelt = Object.keys(entry).filter((key) => key !== 'kind' && didYouMean(key, ['kind']) !== '');
  for (const key of kind === undefined ? misspelt : []) {
    report(document.keySpanOf([...path, key]), 'unknown-key', `unknown key "${key}"; did you mean "kind"?`);
  }
  if (kind === undefined && misspelt.length === 0) {
    report(document.keySpanOf(at), 'missing-key', `missing key "kind"; ${wanted}`);
  }
}

/**
 * Reports names of groups and calendars that the file does not define. It reads the document, so that other problems of a
 * policy don't hide this one.
 */
function reportUnknownNames(reader: FileReader, policy: Path): void {
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

function checkName({ document, report }: FileReader, at: Path, definedUnder: string, kind: string): void {
  const name = document.valueAt(at);
  if (typeof name !== 'string' || document.has([definedUnder, name])) return;
  const defined = document.valueAt([definedUnder]);
  const names = typeof defined === 'object' && defined !== null ? Object.keys(defined) : [];
  const list =
    names.length > 0
      ? `; "${definedUnder}" has ${names.slice(0, 20).join(', ')}`
      : `; this file has no "${definedUnder}"`;
  const message = `no ${kind} is named ${JSON.stringify(name.slice(0, 60))}${didYouMean(name, names) || list}`;
  report(document.spanOf(at), 'value', message);
}
