import { countedComputes, didYouMean, firstNames } from '../../common/names.ts';
import { printable } from '../../common/safe-text.ts';
import type { RecordedCount, Recording } from '../../domain/backtest/replay.ts';
import { COMPUTE_SIZES_CU } from '../../domain/compute/compute-units.ts';
import type { HeadroomPolicy } from '../../domain/policy/kinds/headroom.ts';
import { asKind, policiesOfKind } from '../../domain/policy/kinds/kinds.ts';
import type { PolicySet, PrometheusSource } from '../../domain/policy/policy.ts';
import { sum } from '../../domain/sum.ts';
import { isoInstant } from '../../domain/time/units.ts';
import type { Settings } from '../../settings/settings.ts';
import { orFail, UserError } from '../fail.ts';
import { matcherOf } from '../filter.ts';
import { readSpan } from '../forecast/span.ts';
import { shortened } from '../output.ts';
import { MAX_COUNTS, readCsv } from './read-csv.ts';
import { named, type SubjectFlags, type Subjects, subjectsOfFleet, subjectsOfIds } from './subjects.ts';

export interface RecordingFlags extends SubjectFlags {
  connections?: string;
  prometheus?: boolean;
  source?: string;
  from?: string;
  to?: string;
  /** Seconds. */
  step?: number;
}

export interface Recorded extends Pick<Subjects, 'policies' | 'policy' | 'fleet'> {
  recordings: readonly Recording[];
  notes: readonly string[];
}

interface Options {
  settings: Settings;
  set: PolicySet;
  policy: HeadroomPolicy;
  flags: RecordingFlags;
  /** Ids or globs; empty for all. */
  names: readonly string[];
  zone: string;
  nowMs: number;
}

type Counts = ReadonlyMap<string, readonly RecordedCount[]>;

/** Throws a UserError if the flags contradict each other, or nothing was recorded. */
export async function readRecordings({ names, ...others }: Options): Promise<Recorded> {
  const { flags } = others;
  if ((flags.connections === undefined) === (flags.prometheus !== true)) {
    throw new UserError('say where the counts are: --connections FILE.csv, or --prometheus with --from');
  }
  if (flags.fleet !== undefined && (flags.size !== undefined || flags.suspendAfter !== undefined)) {
    throw new UserError('--fleet says what computes have; leave --size and --suspend-after out');
  }
  const options = { ...others, names: [...new Set(names)] };
  return flags.connections === undefined ? fromPrometheus(options) : fromCsv(options, flags.connections);
}

async function fromCsv(options: Options, file: string): Promise<Recorded> {
  const { flags, names } = options;
  const stray = (['from', 'to', 'step', 'source'] as const).find((flag) => flags[flag] !== undefined);
  if (stray !== undefined) throw new UserError(`--${stray} is for --prometheus; leave it out, or cut the file`);
  const counts = await readCsv(file);
  const ids = named([...counts.keys()], (id) => id, names);
  const subjects = await subjectsFor(options, ids);
  const selected = new Set(subjects.computes.map(({ compute }) => compute.computeId));
  const notSelected = ids.filter((id) => !selected.has(id));
  if (notSelected.length === ids.length) {
    throw new UserError(
      `${file}: ${options.policy.name} selects none of its computes in ${flags.fleet}, such as ${few(notSelected)}`,
    );
  }
  const notes =
    notSelected.length === 0 ? [] : [`left out: ${options.policy.name} does not select ${few(notSelected)}`];
  const isNamed = matcherOf(names);
  const computes = subjects.computes.filter(({ compute }) => isNamed(compute.computeId));
  return recorded({ ...subjects, computes, notes: [...subjects.notes, ...notes] }, counts);
}

async function fromPrometheus(options: Options): Promise<Recorded> {
  const { settings, set, policy, flags, names, zone, nowMs } = options;
  const source = findSource(set, policy, flags.source);
  if (flags.from === undefined) throw new UserError('--prometheus needs --from, and --to unless it is now');
  const span = readSpan({ from: flags.from, to: flags.to ?? isoInstant(nowMs) }, { zone, nowMs });
  const stepMs = flags.step === undefined ? source.everyMs : flags.step * 1000;
  const subjects = await subjectsFor(options, names);
  if (flags.fleet === undefined) assertIdsSuffice(source, names);
  const computes = named(subjects.computes, ({ compute }) => compute.computeId, names);
  if ((computes.length * (span.toMs - span.fromMs)) / stepMs > MAX_COUNTS) {
    throw new UserError(
      `that makes more than ${MAX_COUNTS} counts; ask for less time, fewer computes or a longer --step`,
    );
  }
  const { recordedByPrometheus } = await import('../../compose/sources-and-receivers.ts');
  const asked = computes.map(({ compute }) => compute);
  const read = await recordedByPrometheus({ settings, source, computes: asked, range: { ...span, stepMs } });
  return recorded({ ...subjects, computes }, orFail(read));
}

function subjectsFor(options: Options, ids: readonly string[]): Promise<Subjects> | Subjects {
  const { flags, ...others } = options;
  if (flags.fleet === undefined) return subjectsOfIds(ids, { ...others, flags });
  return subjectsOfFleet({ ...others, fleetFile: flags.fleet });
}

function assertIdsSuffice({ name, query = '' }: PrometheusSource, ids: readonly string[]): void {
  if (ids.length === 0) throw new UserError('--prometheus: name the ids of computes, or a fleet with --fleet');
  const glob = ids.find((id) => /[*?]/.test(id));
  if (glob !== undefined)
    throw new UserError(`${glob}: globs need --fleet with --prometheus; give the ids of computes`);
  const missing = /\$(project|branch)\b/.exec(query)?.[0];
  if (missing !== undefined) throw new UserError(`the query of ${name} asks by ${missing}: name a fleet with --fleet`);
}

function recorded({ policies, policy, fleet, computes, notes }: Subjects, counts: Counts): Recorded {
  const recordings = computes.flatMap((subject): Recording[] => {
    const ofCompute = counts.get(subject.compute.computeId) ?? [];
    return ofCompute.length === 0 ? [] : [{ ...subject, counts: ofCompute }];
  });
  if (recordings.length === 0)
    throw new UserError('nothing was recorded of these computes in this time; check the query');
  const withoutCounts = computes.length - recordings.length;
  return {
    policies,
    policy,
    fleet,
    recordings,
    notes: [
      ...notes,
      ...(withoutCounts > 0 ? [`left out: ${countedComputes(withoutCounts)} without recorded counts`] : []),
      // Notes that the figures may be wrong.
      ...fullNotes(recordings),
      ...profileNotes(recordings),
    ],
  };
}

/** `a, b, c and 4 more`, escaped and shortened. */
function few(texts: readonly string[]): string {
  return firstNames(
    texts.map((text) => shortened(printable(text), 40)),
    3,
  );
}

function fullNotes(recordings: readonly Recording[]): string[] {
  const all = recordings.map((one) => ({ ...one, times: timesFull(one) })).filter(({ times }) => times > 0);
  if (all.length === 0) return [];
  const times = sum(all.map((one) => one.times));
  const counts = sum(all.map((one) => one.counts.length));
  const who = `${few(all.map(idOf))} ${all.length === 1 ? 'was' : 'were'}`;
  return [`${who} full at ${times} of ${counts} counts: more may have wanted to connect than was recorded`];
}

/** A line for each connection profile that contradicts the recorded `max_connections`. */
function profileNotes(recordings: readonly Recording[]): string[] {
  const byProfile = new Map<string, { ids: string[]; maxima: Set<number> }>();
  for (const recording of recordings) {
    const impossible = impossibleMaxima(recording);
    if (impossible.length === 0) continue;
    const ofProfile = byProfile.get(recording.profile.name) ?? { ids: [], maxima: new Set() };
    byProfile.set(recording.profile.name, ofProfile);
    ofProfile.ids.push(idOf(recording));
    for (const max of impossible) ofProfile.maxima.add(max);
  }
  return [...byProfile].map(([profile, { ids, maxima }]) => {
    const had = `${few(ids)} had max_connections ${few([...maxima].map(String))}`;
    return `${had}, which the profile ${profile} gives at no size: is it the right one?`;
  });
}

function timesFull({ counts, profile }: Recording): number {
  return counts.filter(({ connections, maxConnections: max }) => {
    return max !== undefined && connections >= max - profile.reserved;
  }).length;
}

function impossibleMaxima({ counts, profile }: Recording): number[] {
  const possible = new Set(COMPUTE_SIZES_CU.map((cu) => profile.maxConnections({ minCu: cu, maxCu: cu })));
  const maxima = new Set(counts.flatMap(({ maxConnections }) => maxConnections ?? []));
  return [...maxima].filter((max) => !possible.has(max));
}

function idOf({ compute }: Recording): string {
  return compute.computeId;
}

const LONGEST_NAME = 60;

/** Finds a headroom policy. Throws a UserError that lists the headroom policies if none has this name. */
export function findPolicy({ policies }: PolicySet, name: string): HeadroomPolicy {
  const found = policies.find((policy) => policy.name === name);
  const headroom = asKind(found, 'headroom');
  if (headroom) return headroom;
  const headrooms = policiesOfKind(policies, 'headroom').map((policy) => policy.name);
  const there = headrooms.length === 0 ? 'no policy is of kind headroom' : `of kind headroom: ${headrooms.join(', ')}`;
  const shown = shortened(printable(name), LONGEST_NAME);
  if (found) throw new UserError(`--policy: ${shown} is of kind ${found.kind}, not headroom; ${there}`);
  throw new UserError(`--policy: no policy is called ${shown}${didYouMean(name, headrooms)}; ${there}`);
}

/** Finds the named source, by default the policy's own. Throws a UserError unless the source is a Prometheus. */
function findSource({ sources }: PolicySet, { connections }: HeadroomPolicy, name?: string): PrometheusSource {
  const source = sources.get(name ?? connections);
  if (source?.from === 'prometheus') return source;
  const names = [...sources.values()].filter(({ from }) => from === 'prometheus').map((one) => one.name);
  const there =
    names.length === 0
      ? 'no source is from prometheus'
      : `from prometheus are ${names.join(', ')}: name one with --source`;
  const shown = shortened(printable(name ?? connections), LONGEST_NAME);
  if (source)
    throw new UserError(`--prometheus: the source ${shown} is from ${source.from}, which remembers nothing; ${there}`);
  throw new UserError(`--source: no source is called ${shown}${didYouMean(name ?? connections, names)}; ${there}`);
}
