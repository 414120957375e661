import fc from 'fast-check';
import { expect, it } from 'vitest';
import { cursorToMicros, microsToCursor } from '../../src/emulator/wire/times.ts';
import type { ComputeSettings } from '../../src/emulator/world/entities.ts';
import type { Command } from '../../src/emulator/world/execute.ts';
import { createRandom } from '../../src/emulator/world/random.ts';
import { BRANCHES, PROJECT, type Running, readPages, run, shopOf, startWorld, summary } from './world-model.ts';

/** What the test itself knows: keys that live, and those that were revoked. */
interface Model {
  keys: { id: number; token: string }[];
  revoked: string[];
}
type Step = fc.Command<Model, Running>;

function step(name: string, check: (model: Model) => boolean, act: (model: Model, running: Running) => void): Step {
  return { check, run: act, toString: () => name };
}

const always = (): boolean => true;

/** The n-th of the computes that there are just now. */
function computeId(running: Running, index: number): string {
  const ids = [...shopOf(running).computes.keys()];
  return ids[index % Math.max(1, ids.length)] ?? 'ep-none';
}

const settings: fc.Arbitrary<Partial<ComputeSettings>> = fc.record(
  {
    minCu: fc.constantFrom(0.25, 0.5, 1, 3),
    maxCu: fc.constantFrom(1, 2, 4, 16, 18),
    suspendTimeoutSeconds: fc.constantFrom(0, -1, 60, 300, 5),
    branchId: fc.constantFrom(...BRANCHES, 'br-none'),
    disabled: fc.boolean(),
  },
  { requiredKeys: [] },
);

const anyCompute = fc.nat(9);

/** A change is refused with `locked` exactly if it was acceptable otherwise and an operation was open. */
function changeStep(name: string, passMs: number, commandOn: (computeId: string) => Command): (index: number) => Step {
  return (index) =>
    step(`${name} ${index} after ${passMs} ms`, always, (_, running) => {
      run(running, { kind: 'pass_time' }, passMs);
      const wasOpen = shopOf(running).openOperations > 0;
      const outcome = run(running, commandOn(computeId(running, index)));
      if (outcome.ok) expect(wasOpen && outcome.compute !== undefined).toBe(false);
      else if (outcome.refusal.code === 'locked') expect(wasOpen).toBe(true);
    });
}

const pause = fc.constantFrom(0, 1, 60, 1_000, 6_000);

const changes = fc
  .tuple(
    anyCompute,
    pause,
    fc.constantFrom('start_compute', 'suspend_compute', 'restart_compute', 'delete_compute'),
    settings,
    fc.boolean(),
  )
  .map(([index, passMs, verb, changed, isUpdate]) =>
    changeStep(isUpdate ? `update ${JSON.stringify(changed)}` : verb, passMs, (id) =>
      isUpdate
        ? { kind: 'update_compute', projectId: PROJECT, computeId: id, changes: changed }
        : { kind: verb as 'start_compute', projectId: PROJECT, computeId: id },
    )(index),
  );

const creations = fc
  .tuple(fc.constantFrom(...BRANCHES), fc.constantFrom('read_write', 'read_only'), pause)
  .map(([branchId, type, passMs]) =>
    step(`create ${type} on ${branchId}`, always, (_, running) => {
      run(running, { kind: 'pass_time' }, passMs);
      const hadPrimary = [...shopOf(running).computes.values()].some(
        (one) => one.branchId === branchId && one.type === 'read_write',
      );
      const outcome = run(running, {
        kind: 'create_compute',
        projectId: PROJECT,
        wanted: { branchId, type: type as 'read_write', settings: {} },
      });
      if (outcome.ok) expect(outcome.compute?.state).toBe('init');
      if (type === 'read_write' && hadPrimary)
        expect(outcome).toMatchObject({ ok: false, refusal: { code: 'conflict' } });
    }),
  );

const clients = fc
  .tuple(
    anyCompute,
    fc.integer({ min: 1, max: 20 }),
    fc.option(fc.constantFrom(500, 60_000)),
    fc.boolean(),
    fc.boolean(),
  )
  .map(([index, connections, forMs, reconnects, arrive]) =>
    step(`${connections} ${arrive ? 'connect to' : 'leave'} ${index}`, always, (_, running) => {
      const id = computeId(running, index);
      const stay = forMs === null ? {} : { forMs };
      run(
        running,
        arrive
          ? { kind: 'connect', computeId: id, connections, reconnects, ...stay }
          : { kind: 'disconnect', computeId: id, connections },
      );
    }),
  );

const time = fc.integer({ min: 0, max: 900_000 }).map((ms) =>
  step(`${ms} ms pass`, always, (_, running) => {
    run(running, { kind: 'pass_time' }, ms);
  }),
);

const faults = fc
  .tuple(fc.constantFrom('fail', 'error', 'cancel', 'skip', 'hang'), fc.integer({ min: 1, max: 2 }), fc.boolean())
  .map(([outcome, remaining, clear]) =>
    step(clear ? 'clear faults' : `${outcome} ${remaining}`, always, (_, running) => {
      const fault = { id: 'f', outcome: outcome as 'fail', remaining, share: 1, random: createRandom(1) };
      run(running, clear ? { kind: 'clear_operation_faults' } : { kind: 'add_operation_fault', fault });
    }),
  );

const keySteps = fc.tuple(fc.constantFrom('create', 'revoke', 'use'), fc.nat(9)).map(([what, index]) =>
  step(
    `${what} key ${index}`,
    (model) => what === 'create' || model.keys.length > 0,
    (model, running) => {
      if (what === 'create') {
        const created = run(running, { kind: 'create_key', wanted: { kind: 'personal', name: 'k', userId: 'u' } });
        if (!created.ok || created.key === undefined) throw new Error('no key');
        model.keys.push({ id: created.key.id, token: created.key.token });
      } else if (what === 'revoke') {
        const [key] = model.keys.splice(index % model.keys.length, 1);
        expect(run(running, { kind: 'revoke_key', keyId: key?.id ?? 0, owner: { userId: 'u' } }).ok).toBe(true);
        model.revoked.push(key?.token ?? '');
      }
      for (const { token } of model.keys) expect(run(running, { kind: 'use_key', token, from: '' }).ok).toBe(true);
      for (const token of model.revoked) {
        expect(run(running, { kind: 'use_key', token, from: '' })).toMatchObject({ refusal: { code: 'unauthorised' } });
      }
    },
  ),
);

const pages = fc.integer({ min: 1, max: 5 }).map((limit) =>
  step(`read pages of ${limit}`, always, (_, running) => {
    const expected = shopOf(running)
      .operations.map(({ id }) => id)
      .reverse();
    const arrives = (): void => {
      run(running, { kind: 'connect', computeId: computeId(running, 0), connections: 1, reconnects: false }, 400_000);
    };
    expect(readPages(running, limit, arrives)).toEqual(expected);
  }),
);

const steps: fc.Arbitrary<Step>[] = [changes, changes, creations, clients, time, time, faults, keySteps, pages];
const commands = fc.commands(steps, { maxCommands: 60, size: 'max' });

it('keeps one primary for each branch, no overlap of operations, exact pages and dead keys dead, whatever is asked', () => {
  fc.assert(
    fc.property(fc.nat(), commands, (seed, sequence) => {
      fc.modelRun(() => ({ model: { keys: [], revoked: [] }, real: startWorld(seed) }), sequence);
    }),
    { numRuns: 100 },
  );
});

const script = fc.array(
  fc.record({
    passMs: fc.integer({ min: 0, max: 600_000 }),
    index: anyCompute,
    connections: fc.nat(3),
    changed: settings,
  }),
  { maxLength: 25 },
);

type Script = { passMs: number; index: number; connections: number; changed: Partial<ComputeSettings> }[];

/** Plays a script; with `looks`, somebody looks at the world that many times between two commands. */
function play(seed: number, lines: Script, looks: number): unknown {
  const running = startWorld(seed);
  for (const { passMs, index, connections, changed } of lines) {
    const slice = Math.floor(passMs / (looks + 1));
    for (let look = 0; look < looks; look += 1) run(running, { kind: 'pass_time' }, slice);
    run(running, { kind: 'pass_time' }, passMs - slice * looks);
    const id = computeId(running, index);
    if (connections > 0) run(running, { kind: 'connect', computeId: id, connections, forMs: 90_000, reconnects: true });
    else run(running, { kind: 'update_compute', projectId: PROJECT, computeId: id, changes: changed });
  }
  run(running, { kind: 'pass_time' }, 3_600_000);
  return summary(running);
}

it('comes to the same end from the same seed and commands, however often somebody looks in between', () => {
  fc.assert(
    fc.property(fc.nat(), script, fc.integer({ min: 1, max: 5 }), (seed, lines, looks) => {
      expect(play(seed, lines, looks)).toEqual(play(seed, lines, 0));
    }),
    { numRuns: 60 },
  );
});

it('writes cursors that read back to the same microsecond', () => {
  fc.assert(
    fc.property(fc.integer({ min: 0, max: 4_000_000_000_000_000 }), (micros) => {
      expect(cursorToMicros(microsToCursor(micros))).toBe(micros);
    }),
  );
});
