import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, it, onTestFinished } from 'vitest';
import { announce } from '../../src/compose/daemon-file.ts';
import { openOperator } from '../../src/compose/operator-access.ts';
import { openStore } from '../../src/compose/store.ts';
import { readSettings } from '../../src/settings/settings.ts';
import { copyDatabase } from '../support/embedded-folder.ts';

it('a command waits for a daemon that has the store and is starting, and says so where that takes too long', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'ebb-starting-'));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  await copyDatabase(join(folder, 'queue'));
  const read = readSettings({ env: { EBB_QUEUE_URL: `embedded:${join(folder, 'queue')}` }, cwd: folder });
  if (!read.ok) throw new Error(read.problems.join());
  const { settings } = read;
  const held = await openStore(settings);
  if (!held.ok) throw new Error(held.problem);
  onTestFinished(() => held.value.close());
  expect(await openOperator({ settings, waitMs: 0 })).toEqual({
    ok: false,
    problem: expect.stringMatching(/^a daemon is starting on embedded:.*: ask again in a few seconds$/),
  });
  const opening = openOperator({ settings, waitMs: 60_000 });
  const forget = await announce(settings.queue, { url: 'http://127.0.0.1:9', token: 'none' });
  onTestFinished(forget);
  expect(await opening).toMatchObject({ ok: true, value: { via: 'daemon' } });
});
