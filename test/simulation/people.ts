/** What people do in a simulation: on the platform, and by commands to ebb, whose answers they remember. */

import type { Operator, OperatorResult } from '../../src/ports/operator.ts';
import { SECOND_MS, wasReplaced } from './book.ts';
import type { Doing } from './plan.ts';
import type { SimValues } from './policies.ts';
import { type AcknowledgedHold, projectId, type SimFreezeOrder, type World } from './world.ts';

type OnPlatform = Extract<
  Doing,
  {
    do:
      | 'person_changes'
      | 'person_restarts'
      | 'clients_come'
      | 'rename'
      | 'create_compute'
      | 'delete_compute'
      | 'rename_branch';
  }
>;

/** The compute of an index, of those that there are. */
function computeAt(world: World, index: number) {
  const all = [...world.platform.platform.world().computes.values()];
  return all[index % Math.max(1, all.length)];
}

/** What a source of guards says of a compute. */
export function onSource(world: World, doing: Extract<Doing, { do: 'demand' | 'silence' }>): void {
  const { people, time } = world;
  const compute = computeAt(world, doing.compute);
  if (!compute) return;
  if (doing.do === 'demand') people.demands.set(compute.id, doing.cu);
  else {
    const [atMs, untilMs] = [time.now(), time.now() + doing.forMs];
    people.silences.push({ computeId: compute.id, atMs, untilMs, how: doing.how });
  }
}

export function onPlatform(world: World, doing: OnPlatform): void {
  const { people, time } = world;
  const { platform } = world.platform;
  const atMs = time.now();
  if (doing.do === 'rename') {
    const id = projectId(doing.project);
    const from = platform.world().projects.get(id)?.name ?? '';
    if (platform.run({ kind: 'rename_project', projectId: id, name: doing.name }).ok)
      people.renames.push({ projectId: id, atMs, from, to: doing.name });
    return;
  }
  if (doing.do === 'create_compute') {
    createCompute(world, doing);
    return;
  }
  const compute = computeAt(world, doing.compute);
  if (!compute) return;
  const place = { projectId: compute.projectId, computeId: compute.id };
  if (doing.do === 'person_changes') {
    const { size, suspendSeconds } = doing.values;
    const changes = {
      ...(size && { minCu: size[0], maxCu: size[1] }),
      ...(suspendSeconds !== undefined && { suspendTimeoutSeconds: suspendSeconds }),
    };
    const outcome = platform.run({ kind: 'update_compute', ...place, changes });
    world.note(`a person changes ${compute.id}: ${outcome.ok}`);
    if (outcome.ok) people.changes.push({ atMs, computeId: compute.id, values: doing.values });
  } else if (doing.do === 'person_restarts') platform.run({ kind: 'restart_compute', ...place });
  else if (doing.do === 'rename_branch')
    platform.run({ kind: 'rename_branch', ...place, branchId: compute.branchId, name: doing.name });
  else if (doing.do === 'delete_compute') platform.run({ kind: 'delete_compute', ...place });
  else
    platform.run({
      kind: 'connect',
      computeId: compute.id,
      connections: doing.count,
      forMs: doing.forMs,
      reconnects: true,
    });
}

function createCompute(
  world: World,
  { project, size: [minCu, maxCu] }: Extract<Doing, { do: 'create_compute' }>,
): void {
  const { platform } = world.platform;
  const id = projectId(project);
  const before = new Set(platform.world().computes.keys());
  const [branchId] = platform.world().projects.get(id)?.branches.keys() ?? [];
  if (branchId === undefined) return;
  platform.run({
    kind: 'create_compute',
    projectId: id,
    wanted: { branchId, type: 'read_only', settings: { minCu, maxCu } } as never,
  });
  for (const [computeId, made] of platform.world().computes) {
    if (before.has(computeId)) continue;
    const values: SimValues = { size: [made.minCu, made.maxCu], suspendSeconds: made.suspendTimeoutSeconds || 300 };
    world.people.changes.push({ atMs: world.time.now(), computeId, values });
  }
}

/** What was decided before the end of a doubt may be written so long after it, in milliseconds. */
const SLACK_MS = 20 * SECOND_MS;

/** Until then nobody knows what counts. */
export function doubt({ people }: World, ids: readonly string[], untilMs: number): void {
  people.doubts.push(...ids.map((id) => ({ computeId: id, untilMs: untilMs + SLACK_MS })));
}

type Command = Extract<
  Doing,
  { do: 'hold' | 'release_hold' | 'release_compute' | 'release_guard' | 'freeze' | 'unfreeze' | 'restore' }
>;

/** The outcome of a command, of which nobody knows anything until it is answered. */
export async function asked<T>(
  world: World,
  concerned: readonly string[],
  untilMs: number,
  work: Promise<OperatorResult<T>>,
  onDone: (value: T) => void = () => {},
): Promise<T | undefined> {
  const { people } = world;
  const begunMs = world.time.now();
  const doubts = concerned.map((id) => ({ computeId: id, untilMs }));
  people.doubts.push(...doubts);
  try {
    const result = await work;
    world.note(`answered: ${result.ok ? 'ok' : result.error.message}`);
    // The store was lost after it had stored this, and before it answered.
    if (wasReplaced(world, begunMs)) throw new Error('the store was replaced meanwhile');
    if (result.ok) onDone(result.value);
    // A refusal changes nothing.
    people.doubts = people.doubts.filter((one) => !doubts.includes(one));
    return result.ok ? result.value : undefined;
  } catch (error) {
    world.note(`no answer: ${(error as Error).message}`);
    // By the clock of a daemon that may be wrong it may last for years.
    for (const one of doubts) one.untilMs = Number.POSITIVE_INFINITY;
    return undefined;
  }
}

export async function command(
  world: World,
  { operator, isOnTime }: { operator: Operator; isOnTime: boolean },
  doing: Command,
): Promise<void> {
  const { people, time } = world;
  const nowMs = time.now();
  const owner = 'ann';
  const all = [...world.platform.platform.world().computes.values()];
  if (doing.do === 'freeze') {
    const { project, seconds } = doing;
    const id = project === 'all' ? undefined : projectId(project);
    const concerned = all.filter((one) => (id ?? one.projectId) === one.projectId).map((one) => one.id);
    const select = id === undefined ? ('all' as const) : ({ projects: [id] } as never);
    const work = operator.freeze({ select, owner, reason: 'simulated', forSeconds: seconds, allowRaise: false });
    await asked(world, concerned, nowMs + seconds * 1000, work, (made) => {
      const expiresAtMs = Date.parse(made.expires_at ?? '');
      if (!isOnTime) return doubt(world, concerned, Math.max(expiresAtMs, time.now() + seconds * 1000));
      const acknowledged = { acknowledgedAtMs: time.now(), acknowledgedOrder: world.next() };
      const times = { ...acknowledged, expiresAtMs, endedAtMs: Number.POSITIVE_INFINITY };
      people.freezes.push({ id: made.id, ...(id !== undefined && { projectId: id }), ...times });
    });
    return;
  }
  if (doing.do === 'unfreeze') {
    const freeze = people.freezes.filter(({ endedAtMs }) => endedAtMs > nowMs)[doing.nth];
    if (!freeze) return;
    freeze.endedAtMs = nowMs;
    await unfreeze(world, operator, freeze);
    return;
  }
  await onCompute(world, { operator, isOnTime, owner }, doing);
}

/** What was refused is as if nobody had asked: the freeze may have come to concern more computes since the preview. */
async function unfreeze(world: World, operator: Operator, freeze: SimFreezeOrder): Promise<void> {
  const request = { id: freeze.id, owner: 'ann' };
  const preview = await asked(world, [], 0, operator.unfreeze({ ...request, preview: true }));
  const result = operator.unfreeze({ ...request, confirm: preview?.count ?? 0 });
  await asked(world, [], 0, result);
  const isRefused = await result.then(({ ok }) => !ok).catch(() => false);
  if (!isRefused) return;
  const stored = await world.store.current.freezes(world.time.now());
  if (stored.some(({ id }) => id === freeze.id)) freeze.endedAtMs = Number.POSITIVE_INFINITY;
}

async function onCompute(
  world: World,
  { operator, isOnTime, owner }: { operator: Operator; isOnTime: boolean; owner: string },
  doing: Exclude<Command, { do: 'freeze' | 'unfreeze' }>,
): Promise<void> {
  const { people, time } = world;
  const nowMs = time.now();
  if (doing.do === 'release_hold') {
    const hold = people.holds.filter(({ endedAtMs, expiresAtMs }) => endedAtMs > nowMs && expiresAtMs > nowMs)[
      doing.nth
    ];
    if (!hold) return;
    people.releases.push({ computeId: hold.computeId, atMs: nowMs });
    await released(world, [hold], () => operator.release({ target: hold.id, owner }));
    return;
  }
  const compute = computeAt(world, doing.compute);
  if (!compute) return;
  const { id: computeId, projectId: project } = compute;
  const name = `${project}/${computeId}`;
  if (doing.do === 'hold') {
    const { values, isFreeze, seconds } = doing;
    const { size, suspendSeconds } = values;
    const request = {
      ...{ compute: name, owner, reason: 'simulated', forSeconds: seconds },
      ...(size && { size: { minCu: size[0], maxCu: size[1] } }),
      ...(suspendSeconds !== undefined && { suspendTimeoutSeconds: suspendSeconds }),
      ...(isFreeze && { freeze: true }),
    };
    await asked(world, [computeId], nowMs + seconds * 1000, operator.hold(request), (made) => {
      const createdAtMs = Date.parse(made.created_at);
      const expiresAtMs = Date.parse(made.expires_at ?? '');
      // A release that was asked meanwhile may have ended it.
      const isEnded = people.releases.some((one) => one.computeId === computeId && one.atMs >= nowMs);
      if (!isOnTime || isEnded) return doubt(world, [computeId], Math.max(expiresAtMs, time.now() + seconds * 1000));
      const acknowledged = { acknowledgedAtMs: time.now(), acknowledgedOrder: world.next() };
      const times = { createdAtMs, expiresAtMs, ...acknowledged };
      // The newest counts; an answer has its time in seconds.
      const twins = people.holds.filter((one) => one.computeId === computeId && one.createdAtMs === createdAtMs);
      for (const twin of twins) doubt(world, [computeId], Math.min(twin.expiresAtMs, expiresAtMs));
      people.holds.push({ id: made.id, computeId, ...times, values, isFreeze, endedAtMs: Number.POSITIVE_INFINITY });
    });
    return;
  }
  if (doing.do === 'restore') {
    people.restores.push({ computeId, atMs: nowMs });
    await asked(world, [], 0, operator.restore({ computes: [name], owner, now: true }));
    return;
  }
  if (doing.do === 'release_guard') {
    people.guardReleases.push({ computeId, atMs: nowMs });
    await asked(world, [], 0, operator.release({ target: computeId, owner, guard: true }));
    return;
  }
  people.releases.push({ computeId, atMs: nowMs });
  const ended = people.holds.filter((hold) => hold.computeId === computeId && hold.endedAtMs > nowMs);
  await released(world, ended, () => operator.release({ target: computeId, owner }), [computeId]);
}

/** Holds that somebody ends; what was refused is as if nobody had asked. */
async function released(
  world: World,
  holds: readonly AcknowledgedHold[],
  ask: () => ReturnType<Operator['release']>,
  concerned = holds.map(({ computeId }) => computeId),
): Promise<void> {
  for (const hold of holds) hold.endedAtMs = world.time.now();
  const doubts = world.people.doubts.length;
  const begunMs = world.time.now();
  const value = await asked(world, concerned, Number.POSITIVE_INFINITY, ask());
  // One that was set meanwhile may be released too, or not.
  for (const hold of world.people.holds) {
    if (!concerned.includes(hold.computeId) || holds.includes(hold) || hold.acknowledgedAtMs < begunMs) continue;
    hold.endedAtMs = world.time.now();
    doubt(world, [hold.computeId], hold.expiresAtMs);
  }
  if (value !== undefined) for (const hold of holds) hold.isReleased = true;
  const isRefused = value === undefined && world.people.doubts.length <= doubts;
  if (!isRefused) return;
  // Somebody else may have ended it while this one was asked.
  const stored = await world.store.current.holds(world.time.now());
  for (const hold of holds) if (stored.some(({ id }) => id === hold.id)) hold.endedAtMs = Number.POSITIVE_INFINITY;
}
