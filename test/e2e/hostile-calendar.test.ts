import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { request } from 'undici';
import { expect, it, onTestFinished } from 'vitest';
import { freePort } from '../support/child-server.ts';
import { startEbb } from '../support/ebb-process.ts';
import { copyDatabase } from '../support/embedded-folder.ts';
import { makeFolder, startTestPlatform } from '../support/platform.ts';

const WAIT = { timeout: 40_000, interval: 50 };

const POLICIES = `version: 1
calendars:
  off: { ical: ./off.ics }
policies:
  - name: small
    kind: schedule
    select: { projects: ["*"], min_age: 1m }
    windows: [{ at: Mon-Sun 00:00-24:00, except: [off], size: 0.5 }]
    otherwise: leave
`;

const calendar = (event: string) =>
  ['BEGIN:VCALENDAR', 'BEGIN:VEVENT', 'UID:a', 'SUMMARY:Day off', event, 'END:VEVENT', 'END:VCALENDAR', ''].join(
    '\r\n',
  );
const HARMLESS = calendar('DTSTART;VALUE=DATE:20260101');
/** Each of them kept ical.js busy for good. */
const HOSTILE = [
  ['repeats at a huge interval', calendar('DTSTART;VALUE=DATE:20260105\r\nRRULE:FREQ=DAILY;INTERVAL=4294967296')],
  ['repeats since the year 1', calendar('DTSTART;VALUE=DATE:00010101\r\nRRULE:FREQ=DAILY')],
] as const;

it.each(HOSTILE)('ebb validate refuses a calendar that %s', async (_, text) => {
  const folder = await makeFolder({ 'policy.yaml': POLICIES, 'off.ics': text });
  onTestFinished(() => folder.remove());
  const ebb = startEbb(['validate', 'policy.yaml'], { cwd: folder.path });
  onTestFinished(() => ebb.kill());
  expect(await ebb.ended).toBe(1);
  expect(ebb.lines.join('\n') + ebb.stderr()).toContain('the event "Day off" repeats');
});

it.each(HOSTILE)('a daemon answers, and can be stopped, beside a calendar that %s', async (_, text) => {
  const folder = await makeFolder({ 'policy.yaml': POLICIES, 'off.ics': HARMLESS });
  onTestFinished(() => folder.remove());
  await copyDatabase(join(folder.path, '.ebb'));
  const platform = await startTestPlatform({ one: {} });
  onTestFinished(() => platform.close());
  const listen = `127.0.0.1:${await freePort()}`;
  const ebb = startEbb(['run', '--policies', 'policy.yaml', '--listen', listen], {
    cwd: folder.path,
    env: { EBB_API_URL: platform.url, EBB_API_KEY: platform.apiKey },
  });
  onTestFinished(() => ebb.kill());
  const events = (event: string) => ebb.logs().filter((line) => line.event === event);
  await expect.poll(() => [events('ebb.start').length, ebb.stderr()], WAIT).toEqual([1, '']);

  await writeFile(join(folder.path, 'off.ics'), text);
  await expect.poll(() => events('ebb.policies_refused'), WAIT).toHaveLength(1);
  expect(String(events('ebb.policies_refused')[0]?.msg)).toContain('the event "Day off" repeats');
  const answer = await request(`http://${listen}/healthz`, { headersTimeout: 5_000 });
  expect(answer.statusCode).toBe(200);
  await answer.body.dump();
  ebb.child.kill('SIGTERM');
  expect([await ebb.ended, ebb.stderr()]).toEqual([0, '']);
});
