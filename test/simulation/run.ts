/** Runs one plan to its end, in virtual time. */

import { createOperator } from '../../src/app/operator/create-operator.ts';
import { stagedSets } from '../../src/app/rollout/write-permission.ts';
import { requestReconciles } from '../../src/app/triggers.ts';
import { SILENT_LOG } from '../../src/compose/store.ts';
import type { Operator } from '../../src/ports/operator.ts';
import { bookOf, SECOND_MS } from './book.ts';
import { type Machine, type SimDaemon, settingsOf, startDaemon } from './daemon.ts';
import { createLife } from './life.ts';
import { type Outcome, outcomeOf } from './outcome.ts';
import { asked, command, doubt, onPlatform, onSource } from './people.ts';
import { type Doing, FORGOTTEN_MS, type SimAction, type SimPlan } from './plan.ts';
import { type FileName, type SimPolicy, textOf } from './policies.ts';
import { checkQuiet } from './quiet.ts';
import { checkFiles, checkReloaded } from './rollout.ts';
import { checkStaged } from './staging.ts';
import { storeOf } from './stores.ts';
import { createWorld, projectId, type World } from './world.ts';

/** A daemon that did not start is started again after so long, in milliseconds. */
const RESTARTED_MS = 5_000;

export interface SimResult {
  trace: readonly string[];
  violations: World['violations'];
  reached: World['reached'];
  outcome: Outcome;
}

/** By clocks that are less off, a hold ends in the same seconds; milliseconds. */
const NEARLY_RIGHT_MS = 4_000;

interface Group {
  machines: Machine[];
  daemons: SimDaemon[];
  /** The version of the next start, by machine. */
  versions: number[];
  /** The way of a person's command: a daemon, or the store; and if all clocks are right. */
  operator(): { operator: Operator; isOnTime: boolean };
}

export async function simulate(plan: SimPlan): Promise<SimResult> {
  const world = createWorld(plan);
  const settings = settingsOf(world);
  const group: Group = { machines: [], daemons: [], versions: [], operator };
  const person = personOf(world);
  function operator(): ReturnType<Group['operator']> {
    const live = group.daemons.filter((one) => !one.life.isKilled && one.operator);
    const dice = world.diceFor('person');
    const chosen = dice.is(0.6) ? live[dice.index(live.length)] : undefined;
    const isOnTime = group.daemons.every(({ life }) => Math.abs(life.offsetMs) < NEARLY_RIGHT_MS);
    return { operator: chosen?.operator ?? person, isOnTime };
  }
  const start = (index: number) => {
    const machine = group.machines[index] ?? { remembered: undefined, offsetMs: 0 };
    group.machines[index] = machine;
    const { daemon, started } = startDaemon(world, machine, { index, version: group.versions[index] ?? 1, settings });
    group.daemons[index] = daemon;
    void started.then(async () => {
      if (daemon.parts) return;
      // As whoever supervises it would.
      await world.time.wait(RESTARTED_MS);
      if (group.daemons[index] === daemon) start(index);
    });
  };
  const act = (action: SimAction) => {
    const isLong = action.do === 'edit' || action.do === 'half_save';
    world.note(`ACTION ${JSON.stringify(isLong ? { ...action, policies: action.policies.length } : action)}`);
    world.reach(`action ${action.do}`);
    void perform(world, group, action, start).catch((error) => world.note(`${action.do}: ${(error as Error).message}`));
  };
  noteFirstSettings(world);
  world.time.every(APPROVED_MS, () => approveStaged(world, group));
  world.time.every(FILES_LOOKED_AT_MS, () => checkFiles(world, group.daemons));
  bookOf(world).daemons = group.daemons;
  for (let index = 0; index < plan.daemons; index += 1) {
    group.versions[index] = 1;
    start(index);
  }
  const checks = plan.checksAtMs.map((atMs) => ({ atMs, do: 'check' as const }));
  for (const action of [...plan.actions, ...checks].toSorted((a, b) => a.atMs - b.atMs)) {
    await world.time.runTo(action.atMs);
    if (action.do === 'check') {
      await checkQuiet(world, group.daemons);
      continue;
    }
    if (action.afterCalls === undefined) act(action);
    else world.atCall(action.afterCalls, (id) => act(aimed(world, action, id)), action.method);
  }
  for (const daemon of group.daemons) daemon.kill();
  await world.time.runTo(world.time.now() + SECOND_MS);
  const { trace, violations, reached } = world;
  return { trace, violations, reached, outcome: await outcomeOf(world) };
}

/** The action on the compute of a call, where it is on one; a freeze, on its project. */
function aimed({ platform }: World, action: SimAction, id: string | undefined): SimAction {
  const all = [...platform.platform.world().computes.values()];
  const at = all.findIndex((one) => one.id === id);
  if (at < 0) return action;
  if ('compute' in action) return { ...action, compute: at };
  const projects = [...platform.platform.world().projects.keys()];
  if (action.do !== 'freeze' || action.project === 'all') return action;
  return { ...action, project: projects.indexOf(all[at]?.projectId ?? '') };
}

function personOf(world: World): Operator {
  const life = createLife(world.time, () => {});
  const queue = world.broker.connect({ clock: life.clock, onFailed: () => {} });
  return createOperator({
    store: storeOf(world, 'person', life),
    log: SILENT_LOG,
    holder: 'person',
    ...{ clock: life.clock, newId: () => world.newId(), now: async () => life.clock.now() },
    requestReconciles: (projectIds) => requestReconciles({ queue }, projectIds),
  });
}

/** How often rules look at what daemons make of the files, in milliseconds. */
const FILES_LOOKED_AT_MS = 2_000;

/** A person approves what is staged, and sees it after so long, in milliseconds. */
const APPROVED_MS = 20 * SECOND_MS;

async function approveStaged(world: World, { daemons, operator }: Group): Promise<void> {
  for (const daemon of daemons) {
    const { life, parts } = daemon;
    if (life.isKilled || !parts) continue;
    checkStaged(world, daemon);
    for (const { hash, impact } of stagedSets(parts)) {
      world.people.approvals.push(world.time.now());
      const confirm = impact.disconnected;
      void asked(world, [], 0, operator().operator.approve({ hash, owner: 'ann', confirm }), () => {
        if (!world.people.approved.has(hash)) world.people.approved.set(hash, world.time.now());
      });
    }
  }
}

function noteFirstSettings({ people, platform, time }: World): void {
  for (const { id, minCu, maxCu, suspendTimeoutSeconds } of platform.platform.world().computes.values()) {
    const values = { size: [minCu, maxCu] as const, suspendSeconds: suspendTimeoutSeconds };
    people.changes.push({ atMs: time.now() - 3_600_000, computeId: id, values });
  }
}

async function perform(world: World, group: Group, action: SimAction, start: (index: number) => void): Promise<void> {
  switch (action.do) {
    case 'edit':
      return edit(world, group, action);
    case 'add_policy':
      return addPolicy(world, action);
    case 'half_save':
      return halfSave(world, action);
    case 'stop':
    case 'kill':
      return replaceDaemon(world, group, action, start);
    case 'fault':
      return trouble(world, group, action);
    case 'person_changes':
    case 'person_restarts':
    case 'clients_come':
    case 'rename':
    case 'create_compute':
    case 'delete_compute':
    case 'rename_branch':
      return onPlatform(world, action);
    case 'demand':
    case 'silence':
      return onSource(world, action);
    default:
      return command(world, group.operator(), action);
  }
}

async function edit(
  world: World,
  { daemons }: Group,
  { file, policies, how, isSignalled }: Extract<Doing, { do: 'edit' }>,
): Promise<void> {
  save(world, file, policies, how);
  if (!isSignalled) return;
  const asked = { endedAtMs: Number.POSITIVE_INFINITY };
  world.people.reloads.push(asked);
  for (const daemon of daemons) {
    if (!daemon.parts || daemon.life.isKilled) continue;
    const askedAtMs = world.time.now();
    await daemon.reload();
    checkReloaded(world, daemon, askedAtMs);
  }
  asked.endedAtMs = world.time.now();
}

function save(world: World, file: FileName, policies: readonly SimPolicy[], how: 'replaced' | 'in_place'): void {
  world.files.save(file, { text: textOf(policies), how, policies });
}

function addPolicy(world: World, { file, policy }: Extract<Doing, { do: 'add_policy' }>): void {
  const { policies } = world.files.versions[file].at(-1) ?? {};
  if (policies) save(world, file, [...policies.filter(({ name }) => name !== policy.name), policy], 'replaced');
}

/** Half a text: anywhere, or where a policy ends, so that it can be read. */
function cut(text: string, share: number): string {
  const most = text.slice(0, Math.floor(text.length * share));
  const end = most.lastIndexOf('\n  - name:');
  return share < 0.7 && end > 0 ? `${most.slice(0, end)}\n` : most;
}

async function halfSave(
  world: World,
  { file, policies, share, restMs }: Extract<Doing, { do: 'half_save' }>,
): Promise<void> {
  const text = textOf(policies);
  world.files.save(file, { text: cut(text, share), how: 'in_place' });
  await world.time.wait(restMs);
  save(world, file, policies, 'in_place');
}

async function replaceDaemon(
  world: World,
  { daemons, versions }: Group,
  { do: how, daemon: index, backAfterMs, versions: step }: Extract<Doing, { do: 'stop' | 'kill' }>,
  start: (index: number) => void,
): Promise<void> {
  const daemon = daemons[index];
  if (!daemon?.parts || daemon.life.isKilled) return;
  if (how === 'kill') daemon.kill();
  else await daemon.stop();
  versions[index] = Math.max(1, (versions[index] ?? 1) + step);
  await world.time.wait(backAfterMs);
  if (daemons[index] === daemon) start(index);
}

async function trouble(
  world: World,
  { daemons, machines }: Group,
  fault: Extract<Doing, { do: 'fault' }>,
): Promise<void> {
  const { kind, daemon: index, forMs, by } = fault;
  const { time, faults, store } = world;
  const nowMs = time.now();
  const untilMs = nowMs + forMs;
  for (const other of faults) {
    if (other.untilMs > nowMs - 30 * SECOND_MS) world.reach(`pair ${[other.kind, kind].toSorted().join(' + ')}`);
  }
  const project = projectId(fault.project);
  faults.push({ kind, daemon: index, projectId: project, untilMs, by });
  const life = daemons[index]?.life;
  if (kind === 'stall') return life?.stallUntil(untilMs);
  if (kind === 'clock_off') return setClock(world, { daemons, machines }, fault, untilMs);
  if (kind === 'api_stale') return staleReads(world, forMs, by);
  if (kind === 'api_duplicates') return duplicates(world, forMs);
  if (kind === 'api_hides_project' && forMs > FORGOTTEN_MS)
    bookOf(world).forgotten.push({ atMs: nowMs, projectId: project }, { atMs: untilMs, projectId: project });
  if (kind !== 'store_empty' && kind !== 'store_older') return;
  bookOf(world).forgotten.push({ atMs: nowMs });
  doubtUnread(world, daemons);
  const older = kind === 'store_older';
  const id = await store.current.storeId();
  store.current = store.copyAt(older ? nowMs - Math.round(by * 60 * SECOND_MS) : 0);
  bookOf(world).stored.clear();
  if (older) store.current.storeId = async () => id;
}

/** Within this time every daemon has read the holds and freezes of people, in milliseconds. */
const READ_MS = 75 * SECOND_MS;

/** What no running daemon can have read since it was said is lost with the store. */
function doubtUnread(world: World, daemons: readonly SimDaemon[]): void {
  const { people, time, platform } = world;
  const nowMs = time.now();
  const isRead = (atMs: number) =>
    daemons.some(
      ({ life, parts, startedAtMs }) => !life.isKilled && parts && Math.max(startedAtMs, atMs) < nowMs - READ_MS,
    );
  for (const hold of people.holds) {
    // That it was ended may be lost too: then it counts again.
    if (hold.endedAtMs > nowMs - READ_MS && hold.endedAtMs < nowMs) doubt(world, [hold.computeId], hold.expiresAtMs);
    if (isRead(hold.acknowledgedAtMs) || hold.endedAtMs < nowMs) continue;
    hold.endedAtMs = nowMs;
    doubt(world, [hold.computeId], hold.expiresAtMs);
  }
  for (const freeze of people.freezes) {
    if (isRead(freeze.acknowledgedAtMs) || freeze.endedAtMs < nowMs) continue;
    freeze.endedAtMs = nowMs;
    const computes = [...platform.platform.world().computes.values()];
    const concerned = computes.filter((one) => (freeze.projectId ?? one.projectId) === one.projectId);
    doubt(
      world,
      concerned.map(({ id }) => id),
      freeze.expiresAtMs,
    );
  }
}

/** Ahead or behind, by a little or by more than a year. */
const OFFSETS_MS = [1_500, -1_500, 3_000, -20_000, 90_000, -90_000, 400 * 86_400_000] as const;

async function setClock(
  world: World,
  { daemons, machines }: Pick<Group, 'daemons' | 'machines'>,
  { daemon: index, by }: Extract<Doing, { do: 'fault' }>,
  untilMs: number,
): Promise<void> {
  const set = (offsetMs: number) => {
    const machine = machines[index];
    if (machine) machine.offsetMs = offsetMs;
    const life = daemons[index]?.life;
    if (life) Object.assign(life, { offsetMs, offsetSinceMs: world.time.now() });
  };
  set(OFFSETS_MS[Math.floor(by * OFFSETS_MS.length)] ?? 0);
  await world.time.wait(untilMs - world.time.now());
  set(0);
}

async function staleReads(world: World, forMs: number, by: number): Promise<void> {
  const { requestFaults } = world.platform;
  const fault = requestFaults.add({
    kind: 'stale_reads',
    ms: Math.round(by * 55 * SECOND_MS),
    share: 0.7,
    seed: world.plan.seed,
  });
  await world.time.wait(forMs);
  requestFaults.clear(fault.id);
}

async function duplicates(world: World, forMs: number): Promise<void> {
  const { requestFaults } = world.platform;
  const fault = requestFaults.add({ kind: 'duplicates', share: 0.5, seed: world.plan.seed });
  await world.time.wait(forMs);
  requestFaults.clear(fault.id);
}
