import { existsSync, readFileSync } from 'node:fs';
import { expect, it } from 'vitest';

const dockerfile = readFileSync('Dockerfile', 'utf8');
const lines = dockerfile.split('\n');

it('the image pins its base, runs as a user of its own, and has a health check that ebb answers without a token', () => {
  expect(dockerfile).toMatch(/^ARG NODE_IMAGE=node:\d+\.\d+\.\d+-bookworm-slim$/m);
  expect(lines.filter((line) => line.startsWith('FROM') && !/^FROM \$\{NODE_IMAGE\}/.test(line))).toEqual([]);
  expect(lines.findLast((line) => line.startsWith('USER'))).toBe('USER node');
  expect(dockerfile).toContain("fetch('http://127.0.0.1:9464/healthz')");
  expect(dockerfile).toContain('STOPSIGNAL SIGTERM');
});

it('the last stage has no packages of development', () => {
  expect(dockerfile).toMatch(/AS dependencies\n(?:.+\n)*RUN npm ci --omit=dev/);
  expect(dockerfile).toContain('COPY --from=dependencies /app/node_modules');
});

it('whatever is copied exists, and is let through by .dockerignore, which lets through nothing else', () => {
  const copied = lines
    .filter((line) => line.startsWith('COPY') && !line.includes('--from='))
    .flatMap((line) => line.split(' ').slice(1, -1));
  expect(copied.filter((path) => !existsSync(path))).toEqual([]);
  const ignore = readFileSync('.dockerignore', 'utf8').split('\n');
  const allowed = ignore.filter((line) => line.startsWith('!')).map((line) => line.slice(1));
  expect(ignore.find((line) => line !== '' && !line.startsWith('#'))).toBe('*');
  // Of a folder whose contents are ignored again only what is named is let through.
  const whole = allowed.filter((path) => !ignore.includes(`${path}/*`));
  expect(whole.toSorted()).toEqual([...new Set(copied)].toSorted());
});
