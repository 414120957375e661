import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { Hono } from 'hono';

const TYPES = { css: 'text/css; charset=utf-8', js: 'text/javascript; charset=utf-8', svg: 'image/svg+xml' } as const;

/** A file that pages need. Its address changes with what is in it, so that it may be kept for ever. */
interface Asset {
  path: string;
  body: string;
  type: string;
}

/** Stylesheet, script and icon: read once, when the module is loaded. */
export const ASSETS = {
  style: asset('style.css', ['base.css', 'tables.css', 'forms.css', 'fleet.css', 'narrow.css']),
  script: asset('status.js'),
  icon: asset('icon.svg'),
};

export function assetRoutes(): Hono {
  const app = new Hono();
  for (const { path, body, type } of Object.values(ASSETS)) {
    app.get(path, (context) =>
      context.body(body, 200, { 'content-type': type, 'cache-control': 'private, max-age=31536000, immutable' }),
    );
  }
  return app;
}

/** Made of one file, or of several, in their order. */
function asset(name: string, files: readonly string[] = [name]): Asset {
  const body = files.map((file) => readFileSync(new URL(`./assets/${file}`, import.meta.url), 'utf8')).join('\n');
  const [stem = '', ending = ''] = name.split('.');
  const digest = createHash('sha256').update(body).digest('hex').slice(0, 12);
  return { path: `/assets/${stem}-${digest}.${ending}`, body, type: TYPES[ending as keyof typeof TYPES] };
}
