import { expect, it } from 'vitest';
import { afterHerds, type BusyTime } from '../../src/adapters/control-api/after-herds.ts';
import type { ControlApi, Project } from '../../src/ports/control-api.ts';

const BUSY: BusyTime = { fromMs: 100, untilMs: 200, reason: '300 computes change' };
const NEXT: BusyTime = { fromMs: 190, untilMs: 250, reason: '200 computes change' };

/** An API that notes when it is asked, and a clock that goes on only while somebody waits for it. */
function start(startMs: number, busyTimes: readonly BusyTime[] = [BUSY, NEXT]) {
  let nowMs = startMs;
  const asked: string[] = [];
  const said: string[] = [];
  const clock = {
    now: () => nowMs,
    async sleepUntil(untilMs: number, signal: AbortSignal) {
      signal.throwIfAborted();
      nowMs = Math.max(nowMs, untilMs);
    },
  };
  const note = (what: string) => asked.push(`${what} at ${nowMs}`);
  const api = {
    async *listProjects() {
      note('projects');
      yield { ok: true, value: [] };
    },
    listComputes: async () => note('computes'),
    usage: async () => note('usage'),
    close: async () => note('close'),
  } as unknown as ControlApi;
  const onWait = ({ reason, untilMs }: BusyTime) => said.push(`${reason}, until ${untilMs}`);
  return { asked, said, api: afterHerds(api, { busyTimes, clock, onWait }) };
}

const project = { account: 'default', projectId: 'shop', name: 'shop' } as Project;

it('nothing is sent in a busy time, nor in one that begins before it ends; each is told once', async () => {
  const { asked, said, api } = start(120);
  await Promise.all([api.listComputes(project), api.listComputes(project)]);
  expect(asked).toEqual(['computes at 250', 'computes at 250']);
  expect(said).toEqual(['300 computes change, until 200', '200 computes change, until 250']);
});

it.each([99, 250])('at %i, beside the busy times, nothing waits', async (nowMs) => {
  const { asked, said, api } = start(nowMs);
  for await (const _page of api.listProjects());
  await api.listComputes(project);
  expect([asked, said]).toEqual([[`projects at ${nowMs}`, `computes at ${nowMs}`], []]);
});

it('usage has a rate limit of its own', async () => {
  const { asked, api } = start(120);
  await api.usage({} as never);
  expect(asked).toEqual(['usage at 120']);
});

it('a call that is aborted answers so at once', async () => {
  const { asked, api } = start(120);
  await api.listComputes(project, { signal: AbortSignal.abort() });
  expect(asked).toEqual(['computes at 120']);
});
