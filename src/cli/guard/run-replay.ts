import { readPastEntries } from '../../app/guards/past-entries.ts';
import type { ReplayedCompute } from '../../app/guards/replayed-compute.ts';
import { counted, countedComputes } from '../../common/names.ts';
import { replayFromSource } from '../../compose/guard-replay.ts';
import { EARLIER_DAYS } from '../../domain/guards/verdict.ts';
import { compilePolicies } from '../../domain/policy/compiled-policies.ts';
import { pastLowerings } from '../../domain/records/past-lowerings.ts';
import { sum } from '../../domain/sum.ts';
import { DAY_MS, isoInstant } from '../../domain/time/units.ts';
import { orFail, UserError } from '../fail.ts';
import type { PastFlags } from '../flags.ts';
import { answered, withOperator } from '../operator/access.ts';
import { guardNamed, settingsAndPolicies } from '../or-fail.ts';
import { writeNotes, writeOut } from '../output.ts';
import { withProgress } from '../past/progress.ts';
import { readPast } from '../past/read-past.ts';
import { readFleetOrFail } from '../read-fleet.ts';
import { type GuardReplayed, replayJson, replayText } from './replay-text.ts';

export type ReplayFlags = PastFlags & { url?: string };

/** Replays a guard over the past days. Throws a UserError if its source or ebb's audit can't be read. */
export async function runReplay(name: string, flags: ReplayFlags): Promise<void> {
  const { settings, policies: set } = await settingsAndPolicies(flags);
  const guard = guardNamed(set, name);
  const source = set.sources.get(guard.source);
  if (!source) throw new UserError(`guard ${name} has no source`);
  const policies = compilePolicies(set);
  const index = set.policies.indexOf(guard);
  const toMs = Date.now();
  const fromMs = toMs - flags.days * DAY_MS;
  // The replay begins a day earlier, since floors from then may still hold.
  const past = await withOperator(flags, ({ operator }) => answered(readPastEntries(operator, fromMs - DAY_MS)));
  const fleet = await readFleetOrFail({
    settings,
    fleetFile: flags.fleet,
    live: flags.live,
    acceptsMissing: true,
    readBranches: policies.selectsByBranch,
  });
  const selected = fleet.computes.filter((compute) => policies.selects(index, compute, toMs));
  const projectIds = new Set(selected.map(({ projectId }) => projectId));
  const projects = fleet.projects.filter(({ projectId }) => projectIds.has(projectId));
  const awake = await readPast(settings, flags, {
    withoutUsage: true,
    projectIds,
    fleet: { ...fleet, projects, computes: selected, errors: [] },
  });
  const selectedIds = new Set(selected.map(({ computeId }) => computeId));
  const computes = awake.computes
    .filter(({ compute }) => selectedIds.has(compute.computeId))
    .map(({ compute, readHistory }): ReplayedCompute => {
      const lowerings = pastLowerings(past.entries.get(compute.computeId) ?? [], name);
      return { compute, history: readHistory(), lowerings };
    });
  if (computes.length === 0) throw new UserError(`guard ${name} selects no compute`);
  const found = await withProgress(({ replay: onProgress }) =>
    replayFromSource(settings, {
      policies: new Set(set.policies.map((policy) => policy.name)),
      guard,
      source,
      computes,
      fromMs,
      toMs,
      onProgress,
      signal: new AbortController().signal,
      selects: (compute, atMs) => policies.selects(index, compute, atMs),
    }),
  );
  const listed = new Set(fleet.computes.map(({ computeId }) => computeId));
  const gone = [...past.projectOf.keys()].filter((computeId) => !listed.has(computeId));
  const replayed: GuardReplayed = { guard, replay: orFail(found), fromMs, toMs };
  const notes = [
    ...fleet.notes,
    ...sourceNotes(replayed),
    ...auditNotes(past, fromMs),
    ...(gone.length > 0 ? [`left out: ${countedComputes(gone.length)} that ebb changed and that are gone`] : []),
    ...unknownNotes(computes, fromMs),
  ];
  writeNotes({ notes: [...new Set(notes)], missing: [...new Set([...fleet.missing, ...awake.missing])] });
  writeOut(`${flags.json ? replayJson(replayed) : replayText(replayed)}\n`);
}

function sourceNotes({ guard, replay, fromMs }: GuardReplayed): string[] {
  const { ownMs = Number.POSITIVE_INFINITY, anyMs = Number.POSITIVE_INFINITY } = replay;
  const sinceMs = Math.min(ownMs, anyMs);
  const { name, source, badWhen } = guard;
  if (sinceMs > fromMs) return [`source ${source} has samples since ${isoInstant(sinceMs)}: nothing is known before`];
  const isShort = badWhen.relative && sinceMs > fromMs - EARLIER_DAYS * DAY_MS;
  return isShort
    ? [`${name} compares with ${EARLIER_DAYS} earlier days, and ${source} has samples since ${isoInstant(sinceMs)}`]
    : [];
}

function auditNotes({ oldestMs, cut }: { oldestMs: number | undefined; cut: readonly string[] }, fromMs: number) {
  const notes: string[] = [];
  if (oldestMs === undefined) notes.push('the audit has no entry of this time');
  else if (oldestMs > fromMs) notes.push(`the audit begins at ${isoInstant(oldestMs)}`);
  if (cut.length > 0)
    notes.push(`what people changed, and what failed, is not known for all of the time: ${cut.join(', ')}`);
  return notes;
}

function unknownNotes(computes: readonly ReplayedCompute[], fromMs: number): string[] {
  const changes = sum(computes.map(({ lowerings }) => lowerings.unknownChanges));
  const uncertain = computes.filter(({ history }) => history.unknown.length > 0 || history.fromMs > fromMs).length;
  return [
    ...(changes > 0 ? [`left out: ${counted(changes, 'change')} whose earlier values are not known`] : []),
    ...(uncertain > 0
      ? [
          `it is not always known when ${countedComputes(uncertain)} slept: it counts as awake while the guard has values`,
        ]
      : []),
  ];
}
