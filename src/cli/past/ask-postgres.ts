import { type Command, InvalidArgumentError } from 'commander';
import type { PastCompute } from '../../app/recommend/facts.ts';
import { printable } from '../../common/safe-text.ts';
import type { AskedComputes } from '../../compose/ask-postgres.ts';
import { clientText, findCause } from '../../domain/awake/causes.ts';
import type { AskedPostgres, AskedUntil, NamedClient } from '../../domain/awake/clients.ts';
import { formatDuration } from '../../domain/compute/compute-units.ts';
import { formatUsdRange } from '../../domain/compute/cost.ts';
import type { Range } from '../../domain/estimate.ts';
import type { ConnectionSource } from '../../domain/policy/policy.ts';
import { roundTo } from '../../domain/sum.ts';
import { HOUR_MS, isoInstant, MINUTE_MS } from '../../domain/time/units.ts';
import type { Settings } from '../../settings/settings.ts';
import { orFail, UserError } from '../fail.ts';
import { writeErrLine } from '../output.ts';
import { formatRange } from '../ranges.ts';
import { untilInterrupted } from '../signals.ts';
import { withProgress } from './progress.ts';

export interface AskFlags {
  askPostgres?: boolean;
  source?: string;
  minutes: number;
}

const MAX_MINUTES = 60;
/** The most clients of a compute that texts show. */
const MAX_SHOWN = 5;

export function withAskFlags(command: Command): Command {
  return command
    .option(
      '--ask-postgres',
      'sample which clients keep computes awake, at most once a day each; needs DATABASE_URL or --source',
    )
    .option('--source <name>', 'a postgres source of ebb.yaml or the policies, for --ask-postgres')
    .option('--minutes <n>', `how long --ask-postgres samples, at most ${MAX_MINUTES}`, parseMinutes, 15);
}

function parseMinutes(text: string): number {
  const minutes = Number(text);
  if (/^\d{1,2}(\.\d+)?$/.test(text) && minutes >= 0.05 && minutes <= MAX_MINUTES) return minutes;
  throw new InvalidArgumentError(`write minutes up to ${MAX_MINUTES}`);
}

export type AskedCompute<T extends PastCompute> = T & { asked?: AskedPostgres };

/** Refuses contradictory or incomplete flags before anything is read. */
export function checkAskFlags({ askPostgres, source }: AskFlags): void {
  if (!askPostgres && source !== undefined) throw new UserError('--source needs --ask-postgres');
  if (askPostgres && source === undefined) connectionString();
}

function connectionString(): string {
  // biome-ignore lint/style/noProcessEnv: the connection string of one database is no setting of ebb.
  const dsn = process.env.DATABASE_URL?.trim();
  if (dsn) return dsn;
  throw new UserError(
    '--ask-postgres: set DATABASE_URL to the direct connection string of a compute, or give --source',
  );
}

interface AskOptions {
  settings: Settings;
  flags: AskFlags;
  /** The sources of the policies, if these can be read. */
  sources: () => Promise<ReadonlyMap<string, ConnectionSource> | undefined>;
}

/** Asks the Postgres of computes, if the flags say so. Notes on standard error name computes without an answer. */
export async function withAsked<T extends PastCompute>(
  computes: readonly T[],
  options: AskOptions,
): Promise<AskedCompute<T>[]> {
  const { settings, flags } = options;
  if (!flags.askPostgres) return [...computes];
  const beganMs = Date.now();
  const { chosen, from } = await choose(computes, options);
  const { asked, problems, notes } = await ask({ settings, chosen, from, minutes: flags.minutes });
  for (const note of notes) writeErrLine(`note: ${printable(note)}`);
  for (const { compute } of chosen) {
    const { projectName, computeId } = compute;
    const answer = asked.get(computeId);
    const ofCompute = [
      problems.get(computeId),
      answer?.clients.length === 0 && NOBODY,
      answer && answer.atMs < beganMs && `asked before, on ${isoInstant(answer.atMs)}: that is shown for a day`,
    ];
    for (const note of ofCompute)
      if (note) writeErrLine(`note: ${printable(`${projectName} / ${computeId}: ${note}`)}`);
  }
  if (problems.size > 0) process.exitCode = 1;
  return computes.map((one) => {
    const found = asked.get(one.compute.computeId);
    return found ? { ...one, clients: found.clients, sessions: found.sessions, asked: found } : one;
  });
}

const NOBODY = 'its Postgres showed nobody who keeps it awake';

/**
 * Returns the computes to ask. With `--source`: the awake ones whose cause is `unknown` or `never_suspends`, of which at most MAX_ASKED have no
 * earlier answer. Without it: the one that DATABASE_URL leads to.
 */
async function choose<T extends PastCompute>(computes: readonly T[], { flags, settings, sources }: AskOptions) {
  const { source: name } = flags;
  if (name !== undefined) {
    const all = (await sources()) ?? settings.knownSources.sources;
    const source = all.get(name);
    if (source?.from !== 'postgres') {
      throw new UserError(`--source: ${printable(name)} is not a postgres source of ebb.yaml or the policies`);
    }
    const unexplained = computes.filter((one) => {
      const { readHistory, ...facts }: PastCompute = one;
      const cause = findCause({ ...facts, history: readHistory() })?.cause;
      return facts.compute.state === 'active' && (cause === 'unknown' || cause === 'never_suspends');
    });
    const { askedBefore, MAX_ASKED } = await import('../../compose/ask-postgres.ts');
    const earlier = await askedBefore(settings);
    const isAnswered = ({ compute }: PastCompute) => earlier.get(compute.computeId)?.isAnswered === true;
    const lastMs = ({ compute }: PastCompute) => earlier.get(compute.computeId)?.atMs ?? 0;
    const others = unexplained.filter((one) => !isAnswered(one)).toSorted((a, b) => lastMs(a) - lastMs(b));
    const chosen = [...unexplained.filter(isAnswered), ...others.slice(0, MAX_ASKED)];
    if (chosen.length < unexplained.length) {
      writeErrLine(
        `note: only ${MAX_ASKED} of ${unexplained.length} computes are asked: run it again for the others, or name them`,
      );
    }
    return { chosen, from: { source } };
  }
  const dsn = connectionString();
  const { computesOf } = await import('../../compose/ask-postgres.ts');
  const reached = await computesOf(
    dsn,
    computes.map(({ compute }) => compute),
  );
  if (!reached.ok) throw new UserError(`--ask-postgres: DATABASE_URL: ${reached.problem}`);
  const [compute, ...others] = reached.value;
  if (compute === undefined || others.length > 0) {
    throw new UserError('--ask-postgres: DATABASE_URL leads to this machine: name the one compute that it belongs to');
  }
  return { chosen: computes.filter((one) => one.compute === compute), from: { dsn } };
}

async function ask(options: {
  settings: Settings;
  chosen: readonly PastCompute[];
  from: { dsn: string } | { source: ConnectionSource };
  minutes: number;
}): Promise<AskedComputes> {
  const { settings, chosen, from, minutes } = options;
  const { askComputes } = await import('../../compose/ask-postgres.ts');
  const computes = chosen.map(({ compute }) => compute);
  const spanMs = minutes * MINUTE_MS;
  const asked = await untilInterrupted((signal) =>
    withProgress(({ samples: onProgress }) => askComputes({ settings, computes, from, spanMs, signal, onProgress })),
  );
  return orFail(asked);
}

/** The cost of sampling, at most: the cost of the time in which only the samples kept the compute awake. */
function costOf({ keptAwakeMs }: AskedPostgres, { compute, price }: PastCompute) {
  const hours: Range = { low: 0, high: (keptAwakeMs / HOUR_MS) * compute.maxCu };
  return { hours, usd: price === undefined ? undefined : { low: 0, high: hours.high * price } };
}

const UNTIL: Readonly<Record<AskedUntil, string>> = {
  time: '',
  alone: '; then nobody else kept it awake any more',
  asleep: '; then it fell asleep',
  interrupted: '; interrupted',
  failed: '; then it gave no answer',
};

/** The clients, and the cost of asking. */
export function askedLines(asked: AskedPostgres, past: PastCompute): string[] {
  const { clients, samples, sampledMs, keptAwakeMs, atMs, sawStatements, until } = asked;
  const { hours, usd } = costOf(asked, past);
  const cost = usd && past.price !== 0 ? formatUsdRange(usd) : `${formatRange(hours)} CU-hours`;
  const more = clients.length - MAX_SHOWN;
  return [
    ...(clients.length === 0 ? [NOBODY] : clients.slice(0, MAX_SHOWN).map(clientLine)),
    ...(more > 0 ? [`and ${more} more (--json lists all)`] : []),
    ...(sawStatements
      ? []
      : ['CREATE EXTENSION pg_stat_statements there would show clients that connect only for a moment, too']),
    `asked ${samples} times in ${seconds(sampledMs)} until ${isoInstant(atMs)}${UNTIL[until]}: that kept it awake for ${seconds(keptAwakeMs)} (${cost})`,
  ];
}

function clientLine(client: NamedClient): string {
  const alone = `alone it keeps it awake ${Math.round(100 * client.share)} % of the time`;
  return printable(`${clientText(client)} (${alone}${client.confidence === 'low' ? ', seldom seen' : ''})`);
}

function seconds(ms: number): string {
  return formatDuration(Math.round(ms / 1000));
}

export function askedJson(asked: AskedPostgres, past: PastCompute) {
  const { hours, usd } = costOf(asked, past);
  return {
    clients: asked.clients.map(({ kind, user, application, queries, periodMs, visits, share, confidence }) => ({
      kind,
      user,
      application: application ?? null,
      queries: queries.map(({ queryId, text }) => ({ query_id: queryId ?? null, text })),
      period_seconds: periodMs === undefined ? null : roundTo(periodMs / 1000, 2),
      visits,
      awake_share: roundTo(share, 2),
      confidence,
    })),
    asked: {
      at: isoInstant(asked.atMs),
      samples: asked.samples,
      seconds: roundTo(asked.sampledMs / 1000, 2),
      kept_awake_seconds: roundTo(asked.keptAwakeMs / 1000, 2),
      cu_hours: { low: roundTo(hours.low, 2), high: Math.ceil(1e4 * hours.high) / 1e4 },
      usd: usd ? { low: 0, high: Math.ceil(1e4 * usd.high) / 1e4 } : null,
      statements: asked.sawStatements,
      until: asked.until,
    },
  };
}
