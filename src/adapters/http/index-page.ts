import { html } from 'hono/html';

/** What a person sees who opens the daemon's address. */
export function indexPage() {
  return html`<!doctype html>
<html lang="en">
  <head>
    <meta charset="utf-8">
    <meta name="viewport" content="width=device-width, initial-scale=1">
    <title>ebb</title>
  </head>
  <body>
    <h1>ebb</h1>
    <p>Sizes managed-Postgres computes by policy.</p>
    <ul>
      <li><a href="/readyz">Readiness</a>: whether queue, store, policies and control API are there</li>
      <li><a href="/metrics">Metrics</a> for Prometheus</li>
      <li><a href="/healthz">Health</a>: whether the process lives</li>
    </ul>
  </body>
</html>`;
}
