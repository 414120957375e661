import { filterInTurns } from '../../common/in-turns.ts';
import type { Compute } from '../../domain/compute/compute.ts';
import { describeSelect, type Freeze, mayConcern, whyTooManyFreezes } from '../../domain/overrides/freezes.ts';
import { compileProjectSelector } from '../../domain/policy/select.ts';
import { EVERY_COMPUTE, parseSelector } from '../../domain/policy/selector.ts';
import { isoInstant } from '../../domain/time/units.ts';
import type { FreezeDocument, InFlightDocument, UnfreezeDocument } from '../../ports/documents.ts';
import type { FreezeRequest, OperatorResult, Page, PageQuery, UnfreezeRequest } from '../../ports/operator.ts';
import { overrideProblem, ownerProblem, unconfirmed } from './check-request.ts';
import { readReports } from './daemon-reports.ts';
import { freezeDocument, pageOf } from './documents.ts';
import { inFlight } from './in-flight.ts';
import { allRecords, auditOf, type DaemonView, fail, type OperatorParts, shortId } from './parts.ts';

/** Stores a freeze. From then on nothing is written to the selected computes, except raises if the freeze allows them. */
export async function setFreeze(parts: OperatorParts, request: FreezeRequest): Promise<OperatorResult<FreezeDocument>> {
  const problem = overrideProblem(request);
  if (problem !== undefined) return fail('invalid', problem);
  const { owner, reason, forSeconds, allowRaise } = request;
  const limited = limitedToTeam(parts, request.select);
  if (!limited.ok) return limited;
  const createdAtMs = await parts.now();
  const freeze: Freeze = {
    id: shortId('f', parts.newId),
    owner,
    reason,
    createdAtMs,
    expiresAtMs: createdAtMs + forSeconds * 1000,
    allowRaise,
    ...limited.value,
  };
  const coverage = await coveredBy(parts, freeze);
  const refusal = whyOutside(limited.value, coverage);
  if (refusal !== undefined) return fail('forbidden', refusal);
  // The limit is soft: two daemons that are asked at the same instant may each add one.
  const tooMany = whyTooManyFreezes([...(await parts.store.freezes(createdAtMs)), freeze], freeze.team);
  if (tooMany !== undefined) return fail('full', tooMany);
  const message = `frozen: ${describeSelect(freeze)}, until ${isoInstant(freeze.expiresAtMs)}: ${reason}`;
  const audit = await auditOf(parts, { kind: 'freeze', code: 'frozen', message, owner, atMs: createdAtMs });
  const put = await parts.store.putFreeze(freeze, { audit });
  if (!put.ok) return fail('full', `there are ${put.error.limit} freezes already: unfreeze some`);
  await parts.requestReconciles(await projectsOf(parts, [freeze]));
  return { ok: true, value: { ...freezeDocument(freeze), ...coverage, in_flight: await inFlightOf(parts, [freeze]) } };
}

/** Limits a selection to the scope of the caller's team, also for computes that are created later. */
function limitedToTeam(
  { caller, daemon }: OperatorParts,
  select: Freeze['select'],
): OperatorResult<Pick<Freeze, 'select' | 'team'>> {
  const [team, ...more] = caller?.freezes ?? [];
  if (team === undefined) return { ok: true, value: { select } };
  if (more.length > 0) {
    const teams = [team, ...more].join(', ');
    return fail('invalid', `this token may freeze for ${teams}: one freeze is of one team, so use a token for each`);
  }
  const scope = daemon?.teams().find(({ name }) => name === team)?.projects;
  if (!scope) return fail('invalid', `teams of ebb.yaml has no ${team}`);
  const limited = parseSelector({ ...(select === 'all' ? EVERY_COMPUTE : select), scope }, 'request');
  return limited.ok ? { ok: true, value: { select: limited.value, team } } : fail('invalid', limited.problem);
}

/** Returns the freezes that the caller may end. */
function ofCaller({ caller }: OperatorParts, freezes: readonly Freeze[]): readonly Freeze[] {
  const teams = caller?.freezes;
  return teams ? freezes.filter(({ team }) => team !== undefined && teams.includes(team)) : freezes;
}

type Coverage = Pick<FreezeDocument, 'covers' | 'partial'>;

/** Counts the computes of a freeze. Returns no count if the selection can only be evaluated by a daemon, and none is asked. */
async function coveredBy({ daemon, store, clock }: OperatorParts, { select }: Freeze): Promise<Coverage> {
  if (!daemon) return select === 'all' ? { covers: (await allRecords(store)).length } : {};
  const { fleet } = daemon;
  const concerns = mayConcern(select);
  const covered = await filterInTurns([...fleet.evaluatedComputes()], ({ compute }) => concerns(compute), clock);
  const stored = await store.projectIds();
  const isPartial = !fleet.isListed() || stored.some((id) => !fleet.listed(id)) || mayCoverMore(fleet, select);
  return { covers: covered.length, ...(isPartial && { partial: true }) };
}

/** Returns true if a listed project that the selector may match has computes that are not known yet. */
function mayCoverMore(fleet: DaemonView['fleet'], select: Freeze['select']): boolean {
  const matches = compileProjectSelector(select === 'all' ? EVERY_COMPUTE : select);
  return fleet.projectIds().some((projectId) => {
    const cached = fleet.cachedProject(projectId);
    const isKnown = cached?.computes.every(({ computeId }) => fleet.latestEvaluation(computeId));
    if (isKnown && cached?.unreadable.length === 0) return false;
    const { account = '', name, nameUnknown } = fleet.listed(projectId) ?? {};
    return (
      matches({ account, projectId, projectName: name ?? '', ...(nameUnknown && { projectNameUnknown: true }) }) !==
      'no'
    );
  });
}

/** Returns the refusal if a team's selector matches nothing in the team's scope. A freeze of the whole scope is allowed even without computes. */
function whyOutside(
  { select, team }: Pick<Freeze, 'select' | 'team'>,
  { covers, partial }: Coverage,
): string | undefined {
  if (team === undefined || covers !== 0 || partial || select === 'all') return undefined;
  const { scope = [], ...asked } = select;
  if (Object.keys(asked).every((key) => key === 'minAgeMs')) return undefined;
  const selected = describeSelect({ select: asked as typeof select, allowRaise: false });
  return `the scope of team ${team} is ${scope.join().slice(0, 200)}, and no compute in it matches ${selected.slice(0, 200)}: nothing was frozen`;
}

/** Lists active freezes, oldest first. */
export async function listFreezes(
  parts: OperatorParts,
  query: PageQuery,
): Promise<OperatorResult<Page<FreezeDocument>>> {
  const freezes = await parts.store.freezes(await parts.now());
  const { items, next } = pageOf(freezes, ({ createdAtMs, id }) => `${isoInstant(createdAtMs)}/${id}`, query);
  return { ok: true, value: { items: items.map(freezeDocument), next } };
}

/** Ends freezes early, and requests a reconcile of the projects that they stopped. */
export async function unfreeze(
  parts: OperatorParts,
  request: UnfreezeRequest,
): Promise<OperatorResult<UnfreezeDocument>> {
  const { id, owner, preview } = request;
  const problem = ownerProblem(owner);
  if (problem !== undefined) return fail('invalid', problem);
  const atMs = await parts.now();
  const allowed = ofCaller(parts, await parts.store.freezes(atMs));
  const ended = id === 'all' ? allowed : allowed.filter((freeze) => freeze.id === id);
  if (ended.length === 0 && id !== 'all') return fail('not_found', `there is no freeze ${id.slice(0, 80)}: ebb status`);
  const count = await heldBackBy(parts, ended);
  const countField = count === undefined ? {} : { count };
  if (preview) return { ok: true, value: { freezes: ended.map((freeze) => freeze.id), ...countField } };
  const refused = unconfirmed(request, count ?? 0);
  if (refused) return refused;
  for (const freeze of ended) {
    const message = `unfrozen: ${describeSelect(freeze)}`;
    const audit = await auditOf(parts, { kind: 'freeze', code: 'unfrozen', message, owner, atMs });
    await parts.store.deleteFreeze(freeze.id, { audit });
  }
  if (ended.length > 0) await parts.requestReconciles(await projectsOf(parts, ended));
  const in_flight = await inFlightOf(parts, ended);
  return { ok: true, value: { freezes: ended.map((freeze) => freeze.id), ...countField, in_flight } };
}

/** Counts the computes whose change these freezes hold back. Without a daemon, counts for all freezes, by the leader's report. */
async function heldBackBy(
  { daemon, store, now, clock }: OperatorParts,
  freezes: readonly Freeze[],
): Promise<number | undefined> {
  if (freezes.length === 0) return 0;
  if (!daemon) {
    const [leader] = await readReports(store, await now());
    return leader && (leader.waiting.find(({ reason }) => reason === 'frozen')?.computes ?? 0);
  }
  const frozen = [...daemon.fleet.evaluatedComputes()].filter(({ plan }) =>
    plan.waiting.some(({ gate }) => gate.code === 'frozen'),
  );
  const concerned = await filterInTurns(frozen, ({ compute }) => anyConcerns(freezes, compute), clock);
  return concerned.length;
}

function anyConcerns(freezes: readonly Freeze[], compute: Compute): boolean {
  return freezes.some(({ select }) => mayConcern(select)(compute));
}

function inFlightOf(parts: OperatorParts, freezes: readonly Freeze[]): Promise<InFlightDocument[]> {
  const concerns = (_id: string, compute?: Compute) =>
    freezes.length > 0 && (compute === undefined || anyConcerns(freezes, compute));
  return inFlight(parts, { concerns });
}

/** Returns the projects to reconcile. Without a daemon these are all projects, since only daemons can evaluate a selector. */
async function projectsOf({ daemon, store, clock }: OperatorParts, freezes: readonly Freeze[]): Promise<string[]> {
  if (!daemon) return store.projectIds();
  const { fleet } = daemon;
  if (freezes.some(({ select }) => select === 'all')) return fleet.projectIds();
  const computes = [...fleet.evaluatedComputes()].map(({ compute }) => compute);
  const concerned = await filterInTurns(computes, (compute) => anyConcerns(freezes, compute), clock);
  return [...new Set(concerned.map(({ projectId }) => projectId))];
}
