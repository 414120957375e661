import { expect, it, onTestFinished } from 'vitest';
import { WAITS } from '../../src/common/waits.ts';
import { announcingSlowUsage } from '../../src/compose/slow-usage.ts';
import type { ControlApi } from '../../src/ports/control-api.ts';

type Api = Pick<ControlApi, 'usage'>;
const PAGES: Awaited<ReturnType<ControlApi['usage']>> = { ok: true, value: { units: [], plans: new Map() } };
const QUERY = {} as Parameters<ControlApi['usage']>[0];

/** The lines that are told about waits. */
function told() {
  const lines: unknown[] = [];
  let next: (() => void) | undefined;
  const hear = (line: unknown) => {
    lines.push(line);
    next?.();
  };
  WAITS.subscribe(hear);
  onTestFinished(() => void WAITS.unsubscribe(hear));
  const first = new Promise<void>((resolve) => {
    next = resolve;
  });
  return { lines, first };
}

it('a reading of usage that takes long says so while it waits, once for all requests', async () => {
  const { lines, first } = told();
  const api = announcingSlowUsage<Api>({ usage: () => first.then(() => PAGES) }, 1);
  expect(await api.usage(QUERY)).toEqual(PAGES);
  expect(await api.usage(QUERY)).toEqual(PAGES);
  expect(lines).toEqual([expect.stringContaining('reading usage from the control API')]);
});

it('and one that is answered at once says nothing', async () => {
  const { lines } = told();
  const api = announcingSlowUsage<Api>({ usage: async () => PAGES });
  expect(await api.usage(QUERY)).toEqual(PAGES);
  expect(lines).toEqual([]);
});
