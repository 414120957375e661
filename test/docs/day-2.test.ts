import { join } from 'node:path';
import { afterEach, beforeEach, inject, it } from 'vitest';
import { freePort } from '../support/child-server.ts';
import { makeFolder, type Platform, startTestPlatform } from '../support/platform.ts';
import { type RedisServer, startRedisServer } from '../support/redis-server.ts';
import { describeWith } from '../support/requirements.ts';
import { makeOlderBuild } from './older-build.ts';
import { runPage } from './run-page.ts';
import { type Shell, startShell } from './shell.ts';

/** The folder that a reader has after the first week: two teams, a receiver, and a daemon on an embedded store. */
const FOLDER = `
mkdir -p policies/web policies/api
cat > policies/web/office.yaml <<'END'
version: 1
policies:
  - name: office
    kind: schedule
    select: { projects: ["web-shop", "web-blog"], branches: ["main"] }
    windows: [{ at: always, size: 1-2 }]
    otherwise: leave
END
cat > policies/api/small.yaml <<'END'
version: 1
policies:
  - name: small
    kind: limits
    select: { projects: ["api-*"] }
    size: { max: 1 }
END
cat > ebb.yaml <<'END'
mode: enforce
policies: policies
teams:
  team-web: { policies: "policies/web/**", projects: ["web-*"] }
  team-api: { policies: "policies/api/**", projects: ["api-*"] }
notify:
  web: { to: slack, url_env: EBB_NOTIFY_URL_WEB, owners: [team-web] }
END
ebb run > ebb.log 2>&1 & echo $! > ebb.pid
until ebb audit | grep -q 'write  ep-web-shop'; do sleep 1; done
until ebb status | grep -q ' so far'; do sleep 1; done
`;
const DAY_MS = 86_400_000;

describeWith('redis-server', 'docs/day-2.md', () => {
  let platform: Platform;
  let redis: RedisServer;
  let folder: Awaited<ReturnType<typeof makeFolder>>;
  let shell: Shell;
  let listen: string;
  beforeEach(async () => {
    redis = await startRedisServer();
    folder = await makeFolder();
    const one = { minCu: 1, maxCu: 1 };
    const used = { ...one, load: [{ class: 'office_users', cu: 0.5, utcOffsetHours: 0 }] as const };
    const computes = { 'web-shop': used, 'web-blog': one, 'api-one': one };
    platform = await startTestPlatform(computes, { account: 'acme', historyMs: 10 * DAY_MS });
    listen = `127.0.0.1:${await freePort()}`;
    const webhook = { EBB_NOTIFY_URL_WEB: 'http://127.0.0.1:9/web' };
    shell = await startShell({
      EBB_API_URL: platform.url,
      EBB_API_KEY_FILE: 'api-key',
      EBB_LISTEN: listen,
      ...webhook,
    });
  });
  afterEach(async () => {
    await shell?.close();
    await platform?.close();
    await redis?.close();
    await folder?.remove();
  });

  it('works word for word, and prints what the page shows', async () => {
    await platform.control('keys', { kind: 'personal', key: 'fresh' });
    const newer = inject('ebbMain');
    const older = await makeOlderBuild(newer, join(folder.path, 'older'));
    const use = (main: string) => `printf '#!/bin/sh\\nexec node ${main} "$@"\\n' > ../bin/ebb`;
    await shell.run(use(older));
    await shell.run(`printf %s ${platform.apiKey} | install -m 0600 /dev/stdin api-key\n${FOLDER}`);
    // From now on only the store has the usage.
    await platform.control('consumption', { routes: 'none' });
    const toHere = (text: string) =>
      text
        .replaceAll('redis://127.0.0.1:6379', redis.url)
        .replaceAll('127.0.0.1:9464', listen)
        .replace('install -m 0600 /dev/stdin', 'printf %s fresh | install -m 0600 /dev/stdin')
        .replace('OLD_ID', '1')
        .replace('npx --yes --package ./NEW.tgz ebb', `node ${newer}`)
        .replace('npm install --global ./NEW.tgz', use(newer))
        .replace('npm install --global ./OLD.tgz', use(older));
    await runPage(join('docs', 'day-2.md'), { shell, toHere, toPage: (text) => text });
  }, 1_200_000);
});
