import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { Hono } from 'hono';
import { html } from 'hono/html';
import type { Child } from 'hono/jsx';
import type { Staleness } from '../../../ports/documents.ts';

interface LayoutProps {
  /** Shown before "ebb". */
  title: string;
  /** The address that the script loads to refresh the page. */
  refreshes?: string | undefined;
  /** The instant of the data. */
  at?: string | undefined;
  /** Set while the store is unavailable. */
  stale?: Staleness | undefined;
  children: Child;
}

const NAVIGATION = [
  ['/', 'Fleet'],
  ['/cost', 'Cost'],
  ['/recommend', 'Recommendations'],
  ['/history', 'History'],
  ['/runbook', 'Runbook'],
  ['/readyz', 'Readiness'],
  ['/metrics', 'Metrics'],
  ['/api/v1/openapi.json', 'API'],
] as const;

/** The frame of every page. */
function Layout({ title, refreshes, at, stale, children }: LayoutProps) {
  return (
    <html lang="en">
      <head>
        <meta charset="utf-8" />
        <meta name="viewport" content="width=device-width, initial-scale=1" />
        <meta name="color-scheme" content="light dark" />
        <title>{`${title} · ebb`}</title>
        <link rel="icon" href={ASSETS.icon.path} type="image/svg+xml" />
        <link rel="stylesheet" href={ASSETS.style.path} />
        {refreshes !== undefined && <script src={ASSETS.script.path} type="module" />}
      </head>
      <body>
        <a class="skip" href="#main">
          Skip to content
        </a>
        <header class="top">
          <a class="brand" href="/">
            <img src={ASSETS.icon.path} alt="" width="24" height="24" />
            ebb
          </a>
          <nav aria-label="Pages">
            <ul>
              {NAVIGATION.map(([path, name]) => (
                <li>
                  <a href={path}>{name}</a>
                </li>
              ))}
            </ul>
          </nav>
          <div class="freshness">
            {at !== undefined && (
              <span id="as-of" data-live>
                as of <time datetime={at}>{at.slice(11, 19)} UTC</time>
              </span>
            )}
            <button id="pause" type="button" hidden aria-pressed="false">
              Pause updates
            </button>
            <span id="connection" role="status" />
          </div>
        </header>
        <main id="main" tabindex={-1} data-refreshes={refreshes}>
          {refreshes !== undefined && (
            <div id="stale" data-live>
              {stale && <StaleNotice stale={stale} />}
            </div>
          )}
          {children}
        </main>
        <footer>
          Times are <span id="zone">UTC</span>. The same as JSON: <a href="/api/v1/status">/api/v1/status</a>, described
          by <a href="/api/v1/openapi.json">/api/v1/openapi.json</a>.
        </footer>
      </body>
    </html>
  );
}

function StaleNotice({ stale: { since, seconds } }: { stale: Staleness }) {
  return (
    <p class="notice bad" role="status">
      <strong>The store is unavailable.</strong>{' '}
      <span>
        Holds, freezes and decisions are shown as of <time datetime={since}>{since.slice(11, 19)} UTC</time>, {seconds}{' '}
        s ago. Until it is available again, no compute is changed and every command fails.
      </span>
    </p>
  );
}

export function htmlPage(props: LayoutProps) {
  return html`<!doctype html>${<Layout {...props} />}`;
}

const TYPES = { css: 'text/css; charset=utf-8', js: 'text/javascript; charset=utf-8', svg: 'image/svg+xml' } as const;

/** A static file. Its address changes with its content, so that browsers can keep it for ever. */
interface Asset {
  path: string;
  body: string;
  type: string;
}

export const ASSETS = {
  style: asset('style.css', ['base.css', 'tables.css', 'forms.css', 'fleet.css', 'cards.css', 'narrow.css']),
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

/** Joins several files in order. */
function asset(name: string, files: readonly string[] = [name]): Asset {
  const body = files.map((file) => readFileSync(new URL(`./assets/${file}`, import.meta.url), 'utf8')).join('\n');
  const [stem = '', ending = ''] = name.split('.');
  const digest = createHash('sha256').update(body).digest('hex').slice(0, 12);
  return { path: `/assets/${stem}-${digest}.${ending}`, body, type: TYPES[ending as keyof typeof TYPES] };
}
