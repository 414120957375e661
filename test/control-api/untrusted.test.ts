import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { createServer } from 'node:https';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, it, onTestFinished } from 'vitest';
import { makeCertificate } from '../support/certificate.ts';
import { listenLocally } from '../support/local-server.ts';
import { describeWith } from '../support/requirements.ts';
import { client, errorOf } from './support.ts';

describeWith('openssl', 'an API whose certificate nobody vouches for', () => {
  it('gets no write, and none counts as perhaps sent', async () => {
    const folder = await mkdtemp(join(tmpdir(), 'ebb-tls-'));
    onTestFinished(() => rm(folder, { recursive: true, force: true }));
    makeCertificate(folder);
    const [key, cert] = await Promise.all(['key.pem', 'cert.pem'].map((name) => readFile(join(folder, name))));
    let asked = 0;
    const server = createServer({ key, cert }, (_request, response) => {
      asked += 1;
      response.end('{}');
    });
    const { port, close } = await listenLocally(server);
    onTestFinished(close);
    const api = client(`https://127.0.0.1:${port}/api/v2`, {
      // The first wait is longer than the deadline, so that the result is that of one attempt.
      ...{ backoff: { firstMs: 600_000, longestMs: 600_000 }, random: () => 1 },
    });
    const error = errorOf(await api.updateCompute('calm-sea-1', 'ep-1', { minCu: 1 }, { deadlineMs: 60_000 }));
    expect(error).toMatchObject({ code: 'unavailable', message: expect.stringContaining('certificate') });
    expect(error.outcomeUnknown).toBeUndefined();
    expect(asked).toBe(0);
  });
});
