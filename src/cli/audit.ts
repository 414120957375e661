import { Command } from 'commander';
import { DateTime } from 'luxon';
import { pagesOf } from '../app/pages.ts';
import { csvLine } from '../common/csv-text.ts';
import { printable } from '../common/safe-text.ts';
import type { Operator } from '../compose/operator-access.ts';
import { withOutcomes } from '../domain/records/outcomes.ts';
import { parseDurationMs } from '../policy/schema/scalars.ts';
import { UserError } from './fail.ts';
import { type AccessFlags, type Answer, answered, withAccessFlags, withOperator } from './operator/access.ts';
import { printLines, printTable } from './operator/show.ts';
import { writeErrLine } from './output.ts';

const EXAMPLES = `
Examples:
  $ ebb audit
  $ ebb audit --since 2026-11-01T00:00Z --until 2026-12-01T00:00Z --csv > november.csv
  $ ebb audit --compute ep-cool-sea-12345678 --since 90d
  $ ebb audit --owner team-web --json | jq '.[] | select(.kind == "refused")'

One line for each request that ebb has sent to the control API, each command of a person, and each request that a token did not
allow: who, what, from what to what, why, by which policies, and the id of the request. A name that no token has verified is
followed by "?". The line of a change without an answer also has what became of it; --json and --csv have another line for that.
The audit is kept for a year on Postgres and for 30 days on Redis; an embedded store keeps the newest 50,000 entries.`;

export type AuditLine = Answer<'audit'>['items'][number];

interface AuditFlags extends AccessFlags {
  since: string;
  until?: string;
  compute?: string;
  owner?: string;
  csv?: boolean;
}

export function auditCommand(): Command {
  return withAccessFlags(new Command('audit'))
    .option('--since <when>', 'a duration such as 7d, or an instant', '7d')
    .option('--until <when>', 'a duration or an instant (default: now)')
    .option('--compute <compute>', 'id of a compute, or a project that has only one')
    .option('--owner <name>', 'only computes of this owner, and what concerns all')
    .option('--csv', 'print CSV')
    .addHelpText('after', EXAMPLES)
    .action(audit);
}

async function audit(flags: AuditFlags): Promise<void> {
  const { compute, owner, json, csv } = flags;
  if (json && csv) throw new UserError('give either --json or --csv');
  const nowMs = Date.now();
  const untilMs = flags.until === undefined ? Number.MAX_SAFE_INTEGER : parseWhen('--until', flags.until, nowMs);
  const query = { compute, owner, sinceMs: parseWhen('--since', flags.since, nowMs), untilMs };
  await withOperator(flags, async ({ operator, via }) => {
    if (owner !== undefined && via === 'store')
      writeErrLine(
        'note: without a daemon, an entry has the owner that was stored with it; entries of commands on the store have none',
      );
    const lines = auditPages(operator, query);
    if (json) return printArray(lines);
    if (!csv) return showTable(lines);
    printLines([csvLine(Object.keys(CSV_COLUMNS))]);
    for await (const page of lines) printLines(page.map(auditCsvLine));
  });
}

/** Parses an instant, or a duration before now. Returns milliseconds since the epoch. An instant without an offset is UTC. */
function parseWhen(flag: string, text: string, nowMs: number): number {
  const agoMs = parseDurationMs(text);
  if (agoMs !== undefined) return nowMs - agoMs;
  const instant = DateTime.fromISO(text, { zone: 'utc' });
  if (instant.isValid) return instant.toMillis();
  throw new UserError(`${flag}: ${text} is neither a duration such as 7d nor an instant such as 2026-11-01T00:00Z`);
}

async function* auditPages(
  operator: Operator,
  query: Omit<Parameters<Operator['audit']>[0], 'limit' | 'after'>,
): AsyncGenerator<AuditLine[]> {
  for await (const page of pagesOf((part) => operator.audit({ ...query, ...part }))) yield answered(page);
}

/** Prints one JSON array page by page, since a year of the audit may not fit into memory. */
async function printArray(pages: AsyncIterable<AuditLine[]>): Promise<void> {
  let separator = '[';
  for await (const page of pages) {
    for (const line of page) {
      printLines([`${separator}${JSON.stringify(line)}`]);
      separator = ',';
    }
  }
  printLines([separator === '[' ? '[]' : ']']);
}

async function showTable(pages: AsyncIterable<AuditLine[]>): Promise<void> {
  const lines: AuditLine[] = [];
  for await (const page of pages) lines.push(...page);
  const rows = withOutcomes(lines).map(({ at, who, verified, policy, compute_id, kind, reasons }) => {
    const by = who === null ? (policy ?? '') : `${who}${verified ? '' : '?'}`;
    const why = reasons.map(({ message }) => message).join('; ');
    return [at, by, kind, compute_id === '' ? '–' : compute_id, why].map(printable);
  });
  if (rows.length === 0) return printLines(['no change and no command in this time']);
  printTable(['at', 'by', 'what', 'compute', 'why'], rows);
}

const CSV_COLUMNS = {
  at: ({ at }) => at,
  who: ({ who }) => who,
  verified: ({ verified }) => (verified ? 'yes' : 'no'),
  kind: ({ kind }) => kind,
  project_id: ({ project_id }) => project_id,
  compute_id: ({ compute_id }) => compute_id,
  owner: ({ owner }) => owner,
  policy: ({ policy }) => policy,
  from: ({ from }) => settingsText(from),
  to: ({ to }) => settingsText(to),
  reasons: ({ reasons }) => reasons.map(({ message }) => message).join('; '),
  set_hash: ({ set_hash }) => set_hash,
  revision: ({ revision }) => revision,
  request_id: ({ request_id }) => request_id,
  id: ({ id }) => id,
} satisfies Record<string, (line: AuditLine) => string | null>;

function auditCsvLine(line: AuditLine): string {
  return csvLine(Object.values(CSV_COLUMNS).map((textOf) => textOf(line)));
}

function settingsText(settings: AuditLine['from']): string {
  return Object.entries(settings ?? {})
    .map(([name, value]) => `${name}=${value}`)
    .join(' ');
}
