import { join } from 'node:path';
import { afterEach, beforeEach, it } from 'vitest';
import { freePort } from '../support/child-server.ts';
import { type Platform, startTestPlatform } from '../support/platform.ts';
import { type RedisServer, startRedisServer } from '../support/redis-server.ts';
import { describeWith } from '../support/requirements.ts';
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
    select: { projects: ["web-shop", "web-blog"] }
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
`;

describeWith('redis-server', 'docs/day-2.md', () => {
  let platform: Platform;
  let redis: RedisServer;
  let shell: Shell;
  beforeEach(async () => {
    redis = await startRedisServer();
    const one = { minCu: 1, maxCu: 1 };
    platform = await startTestPlatform({ 'web-shop': one, 'web-blog': one, 'api-one': one });
    const listen = `127.0.0.1:${await freePort()}`;
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
  });

  it('works word for word, and prints what the page shows', async () => {
    await platform.control('keys', { kind: 'personal', key: 'fresh' });
    await shell.run(`printf %s ${platform.apiKey} | install -m 0600 /dev/stdin api-key\n${FOLDER}`);
    const toHere = (text: string) =>
      text
        .replaceAll('redis://127.0.0.1:6379', redis.url)
        .replace('install -m 0600 /dev/stdin', 'printf %s fresh | install -m 0600 /dev/stdin');
    await runPage(join('docs', 'day-2.md'), { shell, toHere, toPage: (text) => text });
  }, 1_200_000);
});
