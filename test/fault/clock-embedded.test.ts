import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { request } from 'undici';
import { expect, it, type TestContext } from 'vitest';
import { openEngine } from '../../src/adapters/engine/open-engine.ts';
import { createStore } from '../../src/adapters/store/create-store.ts';
import { withoutInstantsAhead } from '../../src/domain/overrides/instants-ahead.ts';
import { type EbbProcess, startEbb } from '../support/ebb-process.ts';
import { createFakedClock } from '../support/faked-clock.ts';
import { memoryLog } from '../support/memory-log.ts';
import { makeFolder, prepareQueue, startTestPlatform } from '../support/platform.ts';
import { describeWith } from '../support/requirements.ts';
import { CASE_MS, eventually, hourIn, sizedAt } from './fault-case.ts';

const DAY_MS = 86_400_000;

describeWith('faketime', 'an embedded store, whose time is that of the only process on it', () => {
  for (const [where, days] of [
    ['ahead', 400],
    ['behind', -400],
  ] as const) {
    for (const [how, signal] of [
      ['killed', 'SIGKILL'],
      ['stopped', 'SIGTERM'],
    ] as const) {
      const title = `left by a daemon with a clock 400 days ${where} that was ${how}: the next one decides as of now`;
      it.concurrent(title, { timeout: CASE_MS }, async (test) => {
        const at = await startEmbeddedCase(test);
        await at.clock.setAhead((days * DAY_MS) / 1000);
        const wrong = await at.start();
        await eventually(async () => expect((await readyz(wrong)).status).toBe(200));
        expect(offMs(wrong) / DAY_MS).toBeCloseTo(days, 1);
        if (days > 0) await eventually(async () => expect(await at.largest()).toBe(4));
        await wrong.kill(signal);

        await at.clock.setAhead(0);
        await at.writePolicies(sizedAt('1-2', hourIn(15_000).at));
        const right = await at.start();
        await eventually(async () => expect(await at.largest()).toBe(2));
        await expectToldOnce(right, days > 0);
        await right.kill('SIGTERM');
        await at.expectStoredAsOfNow();
      });
    }

    it.concurrent(`of a daemon whose clock was 400 days ${where} and is set right: it decides as of now`, {
      timeout: CASE_MS,
    }, async (test) => {
      const at = await startEmbeddedCase(test);
      await at.clock.setAhead((days * DAY_MS) / 1000);
      const daemon = await at.start();
      await eventually(async () => expect((await readyz(daemon)).status).toBe(200));
      if (days > 0) await eventually(async () => expect(await at.largest()).toBe(4));

      await at.clock.setAhead(0);
      await eventually(() => expect(Math.abs(offMs(daemon, -1))).toBeLessThan(DAY_MS));
      await at.writePolicies(sizedAt('1-2', hourIn(15_000).at));
      await eventually(async () => expect(await at.largest()).toBe(2));
      await expectToldOnce(daemon, days > 0);
      await daemon.kill('SIGTERM');
      await at.expectStoredAsOfNow();
    });
  }
});

/** A daemon on an embedded store, with a clock of its own. */
async function startEmbeddedCase(test: Pick<TestContext, 'onTestFinished' | 'onTestFailed' | 'task'>) {
  const onEnd = (end: () => Promise<unknown>) => test.onTestFinished(() => end().then(() => {}));
  const platform = await startTestPlatform({ one: {} }, { operationTimeMs: 100 });
  onEnd(() => platform.close());
  const folder = await makeFolder({ 'policy.yaml': sizedAt('4') });
  onEnd(() => folder.remove());
  const clock = await createFakedClock();
  onEnd(() => clock.remove());
  const queue = await prepareQueue(folder.path);
  const env = {
    EBB_API_URL: platform.url,
    EBB_API_KEY: platform.apiKey,
    EBB_QUEUE_URL: queue.url,
    EBB_GROUP: queue.group,
    EBB_LISTEN: '127.0.0.1:0',
  };
  return {
    clock,
    writePolicies: (text: string) => writeFile(join(folder.path, 'policy.yaml'), text),
    async start(): Promise<EbbProcess> {
      const args = ['run', '--mode', 'enforce', '--policies', 'policy.yaml'];
      const ebb = startEbb(args, { cwd: folder.path, env: { ...env, ...clock.env } });
      onEnd(() => ebb.kill());
      test.onTestFailed(
        () => void process.stdout.write(`${[test.task.name, ...ebb.lines, ebb.stderr()].join('\n')}\n`),
      );
      await eventually(() => expect(said(ebb, 'ebb.listening')).toHaveLength(1));
      return ebb;
    },
    /** The maximum that was written last. */
    async largest(): Promise<number | undefined> {
      const body = (await platform.writes()).at(-1)?.body;
      return (body as { endpoint: { autoscaling_limit_max_cu?: number } } | undefined)?.endpoint
        .autoscaling_limit_max_cu;
    },
    async expectStoredAsOfNow(): Promise<void> {
      const log = memoryLog();
      const opened = await openEngine({ ...queue, log });
      if (!opened.ok) throw opened.error;
      const { engine } = opened;
      try {
        const store = await createStore({ engine, log });
        const record = (await store.records('one')).get('ep-one');
        if (!record) throw new Error('the record is gone');
        expect(withoutInstantsAhead(record, Date.now()).aheadMs).toBe(0);
        expect(Date.now() - record.lastDecidedAtMs).toBeLessThan(DAY_MS);
      } finally {
        await engine.close();
      }
    },
  };
}

function said(ebb: EbbProcess, event: string) {
  return ebb.logs().filter((line) => line.event === event);
}

/** How far the clock was ahead when it wrote a line of its log, the first or the one at `index`. */
function offMs(ebb: EbbProcess, index = 0): number {
  return Date.parse(String(ebb.logs().at(index)?.time)) - Date.now();
}

async function readyz(ebb: EbbProcess): Promise<{ status: number; text: string }> {
  const answer = await request(`${String(said(ebb, 'ebb.listening')[0]?.url)}/readyz`);
  return { status: answer.statusCode, text: await answer.body.text() };
}

async function expectToldOnce(ebb: EbbProcess, isTold: boolean): Promise<void> {
  expect(said(ebb, 'ebb.stored_time_ahead')).toHaveLength(isTold ? 1 : 0);
  const { text } = await readyz(ebb);
  if (isTold) expect(text).toContain('a stored time of ep-one is');
  else expect(text).toContain('none is ahead of the clock');
}
