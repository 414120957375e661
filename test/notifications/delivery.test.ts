import { describe, expect, it } from 'vitest';
import { createRunInBackground } from '../../src/app/background.ts';
import { startDelivery } from '../../src/app/notifications/delivery.ts';
import { outboxEntries } from '../../src/app/notifications/notify.ts';
import type { Notification, Receiver } from '../../src/domain/notifications/notification.ts';
import type { SendOutcome } from '../../src/ports/outbox.ts';
import type { Store } from '../../src/ports/store.ts';
import { currentRules } from '../support/builders.ts';
import { memoryLog } from '../support/memory-log.ts';
import { createSteppedClock } from '../support/simulated/clock.ts';
import { createMemoryStore } from '../support/simulated/store.ts';

const MINUTE_MS = 60_000;
const DOWN: SendOutcome = { ok: false, isRefused: false, message: 'answered 500' };
const REFUSED: SendOutcome = { ok: false, isRefused: true, message: 'answered 400' };

const receiver = (name: string): Receiver => ({
  ...{
    name,
    to: 'webhook',
    file: 'ebb.yaml',
    allowedOrigins: [],
    url: { from: 'text', text: `http://127.0.0.1/${name}` },
  },
});

const about = (id: string, computeId?: string): Notification => ({
  ...{ id, kind: 'degraded', atMs: 0, text: id, ...(computeId && { projectId: 'p-1', computeId }) },
});

/** A daemon that delivers, on time that the test drives; `answer` says what receivers say to a message. */
function daemonWith(options: {
  receivers?: readonly string[];
  /** Between two checks of the outbox, at least. */
  roundMs?: number;
  perHour?: number;
  /** Gets the bodies of what is sent. */
  bodies?: string[];
  answer?: (to: string, id: string) => SendOutcome | Promise<SendOutcome>;
}) {
  const receivers = (options.receivers ?? ['ops']).map((name) => ({
    ...receiver(name),
    ...(options.perHour !== undefined && { perHour: options.perHour }),
  }));
  const clock = createSteppedClock(0, () => false, { shortestRoundMs: options.roundMs ?? 1_000 });
  const store = createMemoryStore(clock);
  const rules = currentRules();
  rules.current = { ...rules.current, notify: { receivers, statusUrl: 'https://ebb.example' } };
  const got: string[] = [];
  const numbers = new Map<string, number>();
  const log = memoryLog();
  const metrics = {
    increment: (name: string, labels: object, by = 1) => {
      const key = `${name} ${Object.values(labels).join(' ')}`;
      numbers.set(key, (numbers.get(key) ?? 0) + by);
    },
    set: (name: string, labels: object, value: number) =>
      void numbers.set(`${name} ${Object.values(labels).join(' ')}`, value),
    clear: () => {},
    observe: () => {},
  };
  const start = (holder = 'daemon-1', of: Store = store) =>
    startDelivery({
      ...{ store: of, rules, clock, holder, telemetry: { log, metrics } },
      runInBackground: createRunInBackground({ log, metrics }),
      sender: {
        async send({ name }, { id, body }) {
          options.bodies?.push(body);
          got.push(`${name} ${id}`);
          return (await options.answer?.(name, id)) ?? { ok: true };
        },
        close: async () => {},
      },
    });
  const append = (...notifications: Notification[]) =>
    store.appendOutbox(outboxEntries(rules.current.notify, notifications));
  return { clock, store, rules, got, log, start, append, numberOf: (key: string) => numbers.get(key) };
}

const deadOf = (store: Store, name = 'ops') => store.outbox({ receiver: name, state: 'dead', limit: 9 });

describe('the delivery of notifications', () => {
  it('sends each once, in order for each compute', async () => {
    const daemon = daemonWith({});
    await daemon.append(about('1', 'a'), about('2', 'b'), about('3', 'a'), about('4'), about('3', 'a'));
    const running = daemon.start();
    await daemon.clock.runTo(5_000);
    await running.close();
    expect(daemon.got.toSorted()).toEqual(['ops 1', 'ops 2', 'ops 3', 'ops 4']);
    expect(daemon.got.indexOf('ops 1')).toBeLessThan(daemon.got.indexOf('ops 3'));
    expect(await daemon.store.outboxCounts()).toEqual({ receivers: [], lost: 0 });
    expect(daemon.numberOf('ebb_notifications_total ops sent')).toBe(4);
  });

  it('tries again what a receiver could not take for ten minutes, and loses and reorders nothing', async () => {
    const daemon: ReturnType<typeof daemonWith> = daemonWith({
      answer: () => (daemon.clock.now() < 10 * MINUTE_MS ? DOWN : { ok: true }),
    });
    const running = daemon.start();
    for (let at = 0; at < 20; at += 1) {
      await daemon.append({ ...about(`a-${at}`, 'a'), atMs: daemon.clock.now() }, about(`b-${at}`, 'b'));
      await daemon.clock.runTo((at + 1) * 30_000);
    }
    const before = daemon.got.length;
    expect(daemon.numberOf('ebb_notifications_oldest_seconds ops')).toBeGreaterThan(9 * 60);
    await daemon.clock.runTo(20 * MINUTE_MS);
    await running.close();
    const received = daemon.got.slice(before);
    for (const compute of ['a', 'b']) {
      const ofCompute = received.filter((one) => one.startsWith(`ops ${compute}-`));
      const inOrder = Array.from({ length: 20 }, (_, at) => `ops ${compute}-${at}`);
      expect(ofCompute.filter((one, at) => ofCompute.indexOf(one) === at)).toEqual(inOrder);
    }
    // Each failure doubles the pause: a receiver that is down is not hammered.
    expect(before).toBeLessThan(20);
    expect(daemon.log.lines.filter(({ message }) => message.includes('does not take notifications'))).toHaveLength(1);
    expect(await daemon.store.outboxCounts()).toMatchObject({ receivers: [] });
  });

  it('lets a message that always fails delay only those about the same compute', async () => {
    const daemon = daemonWith({ answer: (_, id) => (id === 'a-0' ? DOWN : { ok: true }) });
    // More than are read at once.
    await daemon.append(...Array.from({ length: 150 }, (_, at) => about(`a-${at}`, 'a')), about('b-0', 'b'));
    const running = daemon.start();
    await daemon.clock.runTo(5_000);
    expect(new Set(daemon.got)).toEqual(new Set(['ops a-0', 'ops b-0']));
    await daemon.clock.runTo(20 * MINUTE_MS);
    const tries = daemon.got.filter((one) => one === 'ops a-0').length;
    expect(tries).toBeGreaterThan(5);
    // Its pauses grow though others are taken in between.
    expect(tries).toBeLessThan(15);
    await daemon.append(about('c-0', 'c'), about('b-1', 'b'));
    await daemon.clock.runTo(20 * MINUTE_MS + 2_000);
    expect(daemon.got.slice(-2).toSorted()).toEqual(['ops b-1', 'ops c-0']);
    await daemon.store.finishOutbox('a-0>ops');
    await daemon.clock.runTo(26 * MINUTE_MS);
    await running.close();
    expect(daemon.got.slice(-149)).toEqual(Array.from({ length: 149 }, (_, at) => `ops a-${at + 1}`));
    expect(daemon.log.lines.filter(({ message }) => message.includes('does not take'))).toHaveLength(1);
  });

  it('lets what concerns the fleet go past a digest that is never taken, however long that has failed', async () => {
    const daemon = daemonWith({ answer: (_, id) => (id.startsWith('digest') ? DOWN : { ok: true }), roundMs: 10_000 });
    const aDigest = (owner: string): Notification => ({ ...about(`digest:${owner}`), kind: 'digest', owner });
    await daemon.append(aDigest('a'), { ...about('freeze-1'), kind: 'freeze' });
    const running = daemon.start();
    await daemon.clock.runTo(20_000);
    expect(daemon.got).toContain('ops freeze-1');
    await daemon.append(aDigest('b'));
    await daemon.clock.runTo(6 * 60 * MINUTE_MS);
    const before = daemon.got.length;
    await daemon.append({ ...about('staged-1'), kind: 'staged' }, { ...about('freeze-2'), kind: 'freeze' });
    await daemon.append(about('of-a-compute', 'c'));
    await daemon.clock.runTo(6 * 60 * MINUTE_MS + 20_000);
    await running.close();
    const others = daemon.got.slice(before).filter((one) => !one.startsWith('ops digest'));
    expect(others.toSorted()).toEqual(['ops freeze-2', 'ops of-a-compute', 'ops staged-1']);
  });

  it('does not read its queue again and again while all that waits is left alone', async () => {
    const daemon = daemonWith({ answer: (_, id) => (id === '1' ? DOWN : { ok: true }) });
    let reads = 0;
    const outbox: Store['outbox'] = (query) => {
      reads += 1;
      return daemon.store.outbox(query);
    };
    await daemon.append(about('1', 'a'), about('2', 'a'));
    const running = daemon.start('daemon-1', { ...daemon.store, outbox });
    await daemon.clock.runTo(60 * MINUTE_MS);
    const before = { reads, got: daemon.got.length };
    await daemon.clock.runTo(120 * MINUTE_MS);
    // It was read for each try, and sometimes in between.
    expect(daemon.got.length - before.got).toBeGreaterThan(5);
    expect(reads - before.reads).toBeLessThan(200);
    await daemon.append(about('3', 'b'));
    await daemon.clock.runTo(120 * MINUTE_MS + 2_000);
    await running.close();
    expect(daemon.got.at(-1)).toBe('ops 3');
  });

  it('does not send all that waits to a receiver that is down', async () => {
    const daemon = daemonWith({ answer: () => DOWN });
    await daemon.append(...Array.from({ length: 300 }, (_, at) => about(`${at}`, `ep-${at}`)));
    const running = daemon.start();
    await daemon.clock.runTo(10 * MINUTE_MS);
    await running.close();
    expect(daemon.got.length).toBeLessThan(50);
  });

  it('does not let a receiver that never answers delay another', async () => {
    const daemon = daemonWith({
      receivers: ['hanging', 'ops'],
      answer: (to) => (to === 'hanging' ? new Promise<SendOutcome>((_, reject) => reject) : { ok: true }),
    });
    daemon.start();
    await daemon.append(about('1', 'a'));
    await daemon.clock.runTo(2_000);
    await daemon.append(about('2', 'a'));
    await daemon.clock.runTo(5_000);
    expect(daemon.got).toEqual(['hanging 1', 'ops 1', 'ops 2']);
  });

  it('puts aside what is refused, says so, goes on with the rest, and sends it again when a person says so', async () => {
    let refuses = true;
    const daemon = daemonWith({ answer: (_, id) => (id === '1' && refuses ? REFUSED : { ok: true }) });
    await daemon.append(about('1', 'a'), about('2', 'a'));
    const running = daemon.start();
    await daemon.clock.runTo(5_000);
    expect(daemon.got).toEqual(['ops 1', 'ops 2']);
    expect(await deadOf(daemon.store)).toMatchObject([{ id: '1>ops', tries: 1, error: 'answered 400' }]);
    expect(daemon.numberOf('ebb_notifications_dead ops')).toBe(1);
    expect(daemon.log.lines).toMatchObject([{ level: 'error', fields: { receiver: 'ops', id: '1>ops' } }]);
    refuses = false;
    await daemon.store.updateOutbox('1>ops', { state: 'waiting', tries: 0 });
    await daemon.clock.runTo(10_000);
    await running.close();
    expect(daemon.got).toEqual(['ops 1', 'ops 2', 'ops 1']);
    expect(await deadOf(daemon.store)).toEqual([]);
  });

  it('gives up what could not be sent for a day', async () => {
    const daemon = daemonWith({ answer: () => DOWN, roundMs: MINUTE_MS });
    await daemon.append(about('1', 'a'));
    const running = daemon.start();
    await daemon.clock.runTo(24 * 60 * MINUTE_MS - 10 * MINUTE_MS);
    expect(await deadOf(daemon.store)).toEqual([]);
    await daemon.clock.runTo(24 * 60 * MINUTE_MS + 10 * MINUTE_MS);
    await running.close();
    expect(await deadOf(daemon.store)).toMatchObject([{ id: '1>ops', error: 'answered 500' }]);
  });

  it('leaves what is for a receiver that it does not know to daemons that do, for a day', async () => {
    const daemon = daemonWith({ roundMs: MINUTE_MS });
    const { current } = daemon.rules;
    await daemon.append(about('1', 'a'), { ...about('2', 'b'), atMs: 12 * 60 * MINUTE_MS });
    daemon.rules.current = { ...current, notify: { receivers: [] } };
    const running = daemon.start();
    await daemon.clock.runTo(10 * MINUTE_MS);
    expect([daemon.got, await deadOf(daemon.store)]).toEqual([[], []]);
    await daemon.clock.runTo(25 * 60 * MINUTE_MS);
    const error = 'ebb.yaml of this daemon does not define this receiver';
    expect(await deadOf(daemon.store)).toMatchObject([{ id: '1>ops', error }]);
    daemon.rules.current = current;
    await daemon.clock.runTo(26 * 60 * MINUTE_MS);
    await running.close();
    expect(daemon.got).toEqual(['ops 2']);
  });

  it('takes several messages that fail at once for one failure', async () => {
    const daemon: ReturnType<typeof daemonWith> = daemonWith({
      answer: () => (daemon.clock.now() < 2_500 ? DOWN : { ok: true }),
    });
    await daemon.append(about('1', 'a'), about('2', 'b'), about('3', 'c'), about('4', 'd'));
    const running = daemon.start();
    await daemon.clock.runTo(6_000);
    await running.close();
    expect(new Set(daemon.got.slice(-4))).toEqual(new Set(['ops 1', 'ops 2', 'ops 3', 'ops 4']));
    expect(await daemon.store.outboxCounts()).toMatchObject({ receivers: [] });
  });

  it('is done by one daemon at a time for each receiver', async () => {
    let release = () => {};
    const daemon = daemonWith({ answer: () => new Promise((resolve) => (release = () => resolve({ ok: true }))) });
    await daemon.append(about('1', 'a'), about('2', 'a'));
    const all = [daemon.start('daemon-1'), daemon.start('daemon-2'), daemon.start('daemon-3')];
    await daemon.clock.runTo(10_000);
    expect(daemon.got).toEqual(['ops 1']);
    release();
    await daemon.clock.runTo(20_000);
    expect(daemon.got).toEqual(['ops 1', 'ops 2']);
    release();
    await Promise.all(all.map((one) => one.close()));
  });

  it('sends again what it could not remove from the outbox, by the same id', async () => {
    const daemon = daemonWith({});
    await daemon.append(about('1', 'a'));
    let fails = true;
    const finishOutbox: Store['finishOutbox'] = async (id) => {
      if (!fails) return daemon.store.finishOutbox(id);
      fails = false;
      throw new Error('the store is away');
    };
    const running = daemon.start('daemon-1', { ...daemon.store, finishOutbox });
    await daemon.clock.runTo(10_000);
    await running.close();
    expect(daemon.got).toEqual(['ops 1', 'ops 1']);
  });

  it('folds what is more than a receiver takes in an hour, and never delays what a person needs at once', async () => {
    const bodies: string[] = [];
    const daemon = daemonWith({ perHour: 3, roundMs: 10_000, bodies });
    const aStep = (at: number): Notification => ({
      ...about(`budget_step:${at}`),
      kind: 'budget_step',
      owner: `o-${at}`,
    });
    const running = daemon.start();
    await daemon.append(...Array.from({ length: 10 }, (_, at) => aStep(at)));
    await daemon.clock.runTo(20_000);
    expect(daemon.got.toSorted()).toEqual(['ops budget_step:0', 'ops budget_step:1', 'ops folded:8:budget_step:2']);
    expect(JSON.parse(bodies.at(-1) ?? '')).toMatchObject({
      ...{
        kind: 'folded',
        text: expect.stringMatching(/^8 messages in one, since at most 3 are sent in an hour:\nbudget_step:2\n/),
      },
    });
    expect(daemon.numberOf('ebb_notifications_total ops folded')).toBe(8);
    // The hour is full.
    await daemon.append(aStep(10), aStep(11), about('degraded', 'c'), {
      ...about('key_refused:1'),
      kind: 'key_refused',
    });
    await daemon.append(
      { ...about('change_coming:web:1'), kind: 'change_coming', owner: 'web' },
      { ...about('connections_dropped:d', 'd'), kind: 'connections_dropped' },
      { ...about('guard:e', 'e'), kind: 'guard' },
    );
    await daemon.clock.runTo(40_000);
    expect(daemon.got.slice(3).toSorted()).toEqual([
      ...['ops change_coming:web:1', 'ops connections_dropped:d', 'ops degraded', 'ops guard:e', 'ops key_refused:1'],
    ]);
    await daemon.clock.runTo(59 * MINUTE_MS);
    expect(daemon.got).toHaveLength(8);
    await daemon.clock.runTo(62 * MINUTE_MS);
    await running.close();
    expect(daemon.got.slice(8).toSorted()).toEqual(['ops budget_step:10', 'ops budget_step:11']);
    expect(await daemon.store.outboxCounts()).toEqual({ receivers: [], lost: 0 });
  });

  it('folds changes by others, though each is about a compute', async () => {
    const bodies: string[] = [];
    const daemon = daemonWith({ perHour: 2, roundMs: 10_000, bodies });
    const byHand = (at: number): Notification => ({
      ...about(`manual_change:c-${at}`, `c-${at}`),
      ...{ kind: 'manual_change', owner: 'web' },
    });
    await daemon.append(...Array.from({ length: 300 }, (_, at) => byHand(at)), about('degraded', 'c-299'));
    const running = daemon.start();
    await daemon.clock.runTo(20_000);
    await running.close();
    expect(daemon.got.toSorted()).toEqual([
      ...['ops degraded', 'ops folded:299:manual_change:c-1', 'ops manual_change:c-0'],
    ]);
    expect(bodies.join()).toContain('299 messages in one, since at most 2 are sent in an hour:');
  });

  it('keeps what is to be folded while the receiver is down', async () => {
    const daemon: ReturnType<typeof daemonWith> = daemonWith({
      ...{ perHour: 1, roundMs: 10_000 },
      answer: () => (daemon.clock.now() < 2 * MINUTE_MS ? DOWN : { ok: true }),
    });
    const running = daemon.start();
    await daemon.append(...[1, 2, 3].map((at) => ({ ...about(`freeze:${at}`), kind: 'freeze' as const })));
    await daemon.clock.runTo(10 * MINUTE_MS);
    await running.close();
    expect(new Set(daemon.got)).toEqual(new Set(['ops folded:3:freeze:1']));
    expect(await daemon.store.outboxCounts()).toEqual({ receivers: [], lost: 0 });
  });

  it('takes a folded message that fails for one failure: what a person needs at once goes past it', async () => {
    const daemon: ReturnType<typeof daemonWith> = daemonWith({
      ...{ perHour: 1, roundMs: 1_000 },
      answer: (_, id) => (id.startsWith('folded') && daemon.clock.now() < 2 * MINUTE_MS ? DOWN : { ok: true }),
    });
    const running = daemon.start();
    await daemon.append(
      ...[1, 2, 3, 4, 5].map((at) => ({ ...about(`staged:${at}`), kind: 'staged' as const, owner: `o-${at}` })),
    );
    await daemon.clock.runTo(1_500);
    expect(daemon.got).toEqual(['ops folded:5:staged:1']);
    await daemon.append(about('degraded', 'c'));
    await daemon.clock.runTo(2_500);
    expect(daemon.got.at(-1)).toBe('ops degraded');
    await daemon.clock.runTo(10 * MINUTE_MS);
    await running.close();
    // The pauses grow.
    expect(daemon.got.length).toBeLessThan(10);
    expect(daemon.log.lines.filter(({ message }) => message.includes('does not take'))).toHaveLength(1);
    expect(await daemon.store.outboxCounts()).toEqual({ receivers: [], lost: 0 });
  });

  it('folds all that waits, whole and with commands, in as few messages as it fits into', async () => {
    const bodies: string[] = [];
    const daemon = daemonWith({ perHour: 1, roundMs: 10_000, bodies });
    const running = daemon.start();
    const texts = Array.from({ length: 250 }, (_, at) => `${at}${' is frozen'.repeat(20)}`);
    const aFreeze = (at: number): Notification => ({
      ...about(`freeze:${at}`),
      ...{ kind: 'freeze', text: texts[at] ?? '', command: `ebb unfreeze ${at}` },
    });
    await daemon.append(...texts.map((_, at) => aFreeze(at)));
    await daemon.clock.runTo(20_000);
    await running.close();
    const lines = bodies.flatMap((body) => JSON.parse(body).text.split('\n'));
    expect(lines.filter((line) => !line.includes('messages in one'))).toEqual(
      texts.map((text, at) => `${text} (ebb unfreeze ${at})`),
    );
    expect(bodies).toHaveLength(2);
    expect(JSON.parse(bodies[0] ?? '')).toMatchObject({ kind: 'folded', link: 'https://ebb.example/' });
    expect(await daemon.store.outboxCounts()).toEqual({ receivers: [], lost: 0 });
  });

  it.each([
    ['after a restart', 'daemon-1'],
    ['by another daemon', 'daemon-2'],
  ])('counts what was sent in the hour %s too, and sends the rest an hour later', async (_, second) => {
    const daemon = daemonWith({ perHour: 2, roundMs: 10_000 });
    const aFreeze = (at: number): Notification => ({ ...about(`freeze:${at}`), kind: 'freeze', atMs: at });
    const first = daemon.start('daemon-1');
    await daemon.append(aFreeze(1), aFreeze(2));
    await daemon.clock.runTo(20_000);
    await daemon.append(aFreeze(3), aFreeze(4), aFreeze(5));
    await daemon.clock.runTo(30 * MINUTE_MS);
    await first.close();
    const running = daemon.start(second);
    await daemon.append({ ...about('of-a-compute', 'c'), atMs: 30 * MINUTE_MS });
    await daemon.clock.runTo(59 * MINUTE_MS);
    expect(daemon.got).toEqual(['ops freeze:1', 'ops freeze:2', 'ops of-a-compute']);
    await daemon.clock.runTo(61 * MINUTE_MS);
    await running.close();
    expect(daemon.got.slice(3)).toEqual(['ops freeze:3', 'ops folded:2:freeze:4']);
  });

  it('counts no message as late that waits because the hour is full', async () => {
    const daemon: ReturnType<typeof daemonWith> = daemonWith({
      ...{ perHour: 1, roundMs: 10_000 },
      answer: (_, id) => (id === 'failing' ? DOWN : { ok: true }),
    });
    const lateS = () => daemon.numberOf('ebb_notifications_oldest_seconds ops');
    const running = daemon.start();
    await daemon.append({ ...about('freeze:1'), kind: 'freeze' });
    await daemon.clock.runTo(20_000);
    await daemon.append({ ...about('freeze:2'), kind: 'freeze', atMs: 20_000 });
    await daemon.clock.runTo(30 * MINUTE_MS);
    expect([daemon.numberOf('ebb_notifications_waiting ops'), lateS()]).toEqual([1, 0]);
    await daemon.append({ ...about('failing', 'c'), atMs: 30 * MINUTE_MS });
    await daemon.clock.runTo(50 * MINUTE_MS);
    expect(lateS()).toBeGreaterThan(19 * 60);
    await daemon.clock.runTo(61 * MINUTE_MS);
    await running.close();
    expect(daemon.got).toContain('ops freeze:2');
  });
});
