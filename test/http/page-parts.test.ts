import { html } from 'hono/html';
import { describe, expect, it } from 'vitest';
import { NextChange } from '../../src/adapters/http/page/compute-view.tsx';
import { costView } from '../../src/adapters/http/page/cost-view.tsx';
import { DecisionList, Decisions } from '../../src/adapters/http/page/decisions.tsx';
import { fleetLink } from '../../src/adapters/http/page/fleet-filters.tsx';
import { HoldList } from '../../src/adapters/http/page/hold-form.tsx';
import { Guards, Notices } from '../../src/adapters/http/page/notices.tsx';
import { Overview } from '../../src/adapters/http/page/overview.tsx';
import { Message } from '../../src/adapters/http/page/parts.tsx';
import { runbookView } from '../../src/adapters/http/page/small-views.tsx';
import type { DecisionDocument, HoldDocument, StatusDocument } from '../../src/ports/documents.ts';
import type { FleetRowDocument } from '../../src/ports/status-page.ts';
import { emptyFleet } from './empty-fleet.ts';
import { QUIET, textOf } from './quiet-status.ts';

const NOW = '2026-11-22T19:00:00Z';

describe('texts of the page', () => {
  it('have their instants as times, which a browser shows in local time', () => {
    expect(String(Message({ text: 'open since 2026-11-22T05:30:00Z, <b>until</b> 2026-11-23T05:30:00.5Z' }))).toBe(
      'open since <time datetime="2026-11-22T05:30:00Z">2026-11-22 05:30 UTC</time>, &lt;b&gt;until&lt;/b&gt; ' +
        '<time datetime="2026-11-23T05:30:00.5Z">2026-11-23 05:30 UTC</time>',
    );
  });

  it('say beside the list what changed, once, and why', () => {
    const message = 'size 1-4 → 2 CU: window 1 of office, open since 2026-11-22T05:30:00Z';
    const decision = {
      ...{ at: NOW, compute_id: 'ep-shop', kind: 'write', reasons: [{ code: 'window_open', message }] },
      ...{ from: { min_cu: 1, max_cu: 4 }, to: { min_cu: 2, max_cu: 2 } },
    } as unknown as DecisionDocument;
    expect(textOf(DecisionList({ decisions: [decision], now: NOW }))).toBe(
      '19:00 in 0 s ep-shop write 1-4 CU → 2 CU window 1 of office, open since 2026-11-22 05:30 UTC',
    );
  });

  it('link what changed to its line of the audit, and what has no line there to the recent decisions of the compute', async () => {
    const written = { at: NOW, compute_id: 'ep-shop', kind: 'write', reasons: [], from: null, to: null, policy: null };
    const decisions = [
      { ...written, id: 'd-1' },
      { ...written, id: null, kind: 'held' },
    ] as unknown as DecisionDocument[];
    const links = [
      'href="/history?kind=write&amp;compute=ep-shop#d-1"',
      'show=decisions&amp;kind=held&amp;compute=ep-shop"',
    ];
    for (const view of [DecisionList, Decisions]) {
      const markup = String(await html`${view({ decisions, now: NOW })}`);
      for (const link of links) expect(markup).toContain(link);
    }
  });

  it('have a space between the change that waits and the next one', () => {
    const segment = (from: string, size: number) => ({
      ...{ from, to: from, min_cu: size, max_cu: size, suspend_timeout_seconds: 0, policies: ['office'] },
    });
    const row = {
      ...{ verdict: 'wait', until: '2026-11-22T20:00:00Z', reasons: [{ code: 'deadline', message: 'clients' }] },
      week: { state: 'known', segments: [segment(NOW, 1), segment('2026-11-22T20:00:00Z', 2)] },
      overdue_since: null,
    } as unknown as FleetRowDocument;
    expect(textOf(NextChange({ row, now: NOW }))).toMatch(/^waits until 20:00[^:]*: clients 20:00/);
  });

  it('of costs lead to owners that there are, and not to the sum of several', async () => {
    const sums = { cu_hours: 3, usd: null, unknown_hours: 0, projected_usd: null };
    const daily = { cu_hours: [1], usd: null };
    const costs = {
      ...{ at: NOW, from: NOW, to: NOW, known_until: NOW, total: sums, would_have_saved: null },
      owners: [{ account: 'main', owner: 'web', ...sums, projected_cu_hours: null, anomaly: null }],
    };
    const detail = {
      ...{ first_day: '2026-11-01', projects: [], projects_left_out: 0 },
      owners: ['web', 'gone', 'others'].map((owner) => ({ owner, ...daily })),
    };
    const status = { ...QUIET, at: NOW, costs } as unknown as StatusDocument;
    const page = String(await costView({ status, detail, query: { page: 1 }, stale: undefined }));
    expect(page).toContain('<a href="/cost?owner=web">web</a>');
    expect([page.includes('owner=others'), page.includes('others')]).toEqual([false, true]);
    expect(page.match(/<option value="[^"]+"/g)).toEqual(['<option value="web"']);
  });

  it('name of a hold beside the list what it sets, until when, who set it and why', () => {
    const hold = {
      ...{ id: 'h-1', compute_id: 'ep-shop', owner: 'ann', reason: 'import', expires_at: '2026-11-22T21:00:00Z' },
      ...{ size: { min_cu: 2, max_cu: 4 }, suspend_timeout_seconds: null, freeze: false, limited: null },
    } as unknown as HoldDocument;
    const list = HoldList({ holds: [hold], now: NOW, none: 'None.' });
    expect(textOf(list)).toBe('ep-shop 2-4 CU until 21:00 in 2 hann: import Release the hold on ep-shop');
    expect(String(list)).toContain('<a href="/holds/h-1">');
  });

  it('count in the first screen what needs a person, budgets that are over among it, the dearest first', () => {
    const budget = (name: string, spent: number, mid: number) => ({
      ...{ budget: name, account: 'main', month: { unit: 'usd', amount: 100 }, spent, limiting: [] },
      projected: { low: mid - 5, mid, high: mid + 5 },
    });
    const text = (of: object) =>
      textOf(
        Overview({
          status: { ...QUIET, ...of } as unknown as StatusDocument,
          fleet: emptyFleet(NOW),
          costs: null,
          query: { q: '', page: 1 },
        }),
      );
    expect(text({})).toMatch(/What needs a personNothing needs attention\.What it costs/);
    const budgets = [budget('calm', 20, 90), budget('near', 60, 120), budget('over', 145, 180)];
    const degraded = [{ compute_id: 'ep-one', project_id: 'p', message: 'refused' }];
    expect(text({ budgets, degraded })).toMatch(
      /a person1 compute is degradedBudget over is over: 145\u00a0% spentBudget near will be over: 120\u00a0% projectedWhat it costs/,
    );
  });

  it('show in the first screen the month, what was saved and on what it rests, and changes by hour and owner', () => {
    const costs = {
      ...{ at: NOW, from: '2026-11-01T00:00:00Z', to: '2026-12-01T00:00:00Z', known_until: '2026-11-22T17:00:00Z' },
      owners: [],
      total: { cu_hours: 900, usd: 1234.5, unknown_hours: 3, projected_usd: { low: 1500, mid: 1600, high: 1700 } },
      would_have_saved: {
        ...{ figure: 'replayed', computes: 7, used_cu_hours: 410.4, cu_hours: { low: 10, high: 20 } },
        ...{
          usd: { low: 30, high: 40 },
          parts: [{ part: 'timeouts', figure: 'at_least', cu_hours: { low: 1, high: 2 } }],
        },
      },
    };
    const detail = { first_day: '2026-11-01', owners: [], projects: [], projects_left_out: 0 };
    const nine = { computes: 9, owners: [{ owner: '<team>', computes: 9 }] };
    const upcoming = [
      { first: '2026-11-22T20:00:00Z', last: '2026-11-22T20:00:30Z', ...nine },
      { first: '2026-11-22T21:10:00Z', last: '2026-11-22T21:40:00Z', ...nine },
    ];
    const page = Overview({
      status: { ...QUIET, mode: 'observe', costs } as unknown as StatusDocument,
      fleet: { ...emptyFleet(NOW), upcoming, projects: { listed: 300, read: 31 } },
      costs: { ...detail, owners: [{ owner: 'web', cu_hours: [1, 2], usd: [3, 4] }] },
      query: { q: '', page: 1 },
    });
    expect(textOf(page)).toContain('Of 300 projects, 31 read: what is shown is without the others.');
    expect(textOf(page)).toMatch(/\$1,235 this month\$1,500 to \$1,700 projected.*known until .*; 3 hours unknown/);
    expect(textOf(page)).toMatch(/\$30\.00 to \$40\.00 would have been saved.*Rests on 7 computes with 410 measured/);
    expect(textOf(page)).toMatch(/of shorter timeouts the low end is promised/);
    expect(textOf(page)).toMatch(/20:00 in 1 h &lt;team&gt; 9/);
    expect(textOf(page)).toMatch(/21:10–21:40 in 2 h 10 min &lt;team&gt; 9/);
    expect(String(page)).toMatch(/<path class="fan" d="M[\d. L]+Z"/);
    expect(String(page)).toContain('href="/?owner=%3Cteam%3E&amp;sort=next"');
  });
});

it.each([
  [
    { computes: 12, low_cu: 3.5, high_cu: 24 },
    /3\.5 to 24 CU saved at this moment: the 12 computes that policies size/,
  ],
  [{ computes: 1, low_cu: -2, high_cu: 4 }, /2 CU more to 4 CU saved at this moment: the 1 compute/],
  [{ computes: 1, low_cu: 3, high_cu: 3 }, /3 CU saved at this moment/],
  [{ computes: 0, low_cu: 0, high_cu: 0 }, /saves ?Only a trial proves/],
])('show in the first screen what ebb saves now while it enforces: %j', (saved_now, words) => {
  const status = { ...QUIET, mode: 'enforce' } as unknown as StatusDocument;
  const fleet = { ...emptyFleet(NOW), saved_now };
  const text = textOf(Overview({ status, fleet, costs: null, query: { q: '', page: 1 } }));
  expect(text).toMatch(words);
  expect(text).toContain('Only a trial proves what enforcing saves');
});

it('links of the first screen keep the filter', () => {
  const upcoming = [{ first: NOW, last: NOW, computes: 1, owners: [{ owner: 'web', computes: 1 }] }];
  const budget = { budget: 'web-money', account: 'main', spent: 120, projected: null, limiting: [] };
  const status = {
    ...QUIET,
    policies: [{ name: 'web-money', owner: 'web' }],
    budgets: [{ ...budget, month: { unit: 'usd', amount: 100 } }],
  } as unknown as StatusDocument;
  const query = { q: 'eu', owner: 'web', page: 3 };
  const page = String(Overview({ status, fleet: { ...emptyFleet(NOW), upcoming }, costs: null, query }));
  const links = [...page.matchAll(/href="([^"]+)">(?:In order|web|What would save more|Budget [^<]+)</g)];
  expect(links.map(([, href]) => href)).toEqual([
    '/cost?owner=web',
    '/recommend?owner=web',
    '/?q=eu&amp;owner=web&amp;sort=next',
    '/?q=eu&amp;owner=web&amp;sort=next',
  ]);
});

it('the first screen says how many computes are only observed', () => {
  const nextOf = (waiting: StatusDocument['waiting']) => {
    const status = { ...QUIET, mode: 'observe', waiting } as unknown as StatusDocument;
    const page = Overview({
      status,
      fleet: { ...emptyFleet(NOW), known: 300 },
      costs: null,
      query: { q: '', page: 1 },
    });
    return textOf(page).replace(/\s+/g, ' ').split('What changes next')[1];
  };
  expect(nextOf([{ reason: 'observe', computes: 82 }])).toBe(
    '82 computes would be changed, at once or after a wait, if ebb did not only observeNo policy changes anything else within a day.',
  );
  expect(nextOf([])).toBe('No policy changes anything within a day.');
});

it('each staged set is shown with its hash, also those of teams', () => {
  const staged_teams = ['web', 'api'].map((owner) => ({ owner, hash: owner, message: `ebb approve ${owner}` }));
  const staged = { hash: 'all', message: 'ebb approve all' };
  const status = { ...QUIET, staged, staged_teams } as unknown as StatusDocument;
  expect(textOf(Notices({ status, now: NOW })).match(/ebb approve [a-z]+/g)).toEqual(
    ['all', 'web', 'api'].map((hash) => `ebb approve ${hash}`),
  );
});

it('an owner is shown guards of their own, and others that were asked of their computes', () => {
  const guard = { healthy: 0, bad: 0, unknown: 1, watched: 0, held_back: 0 };
  const guards = ['mine', 'all', 'elsewhere'].map((name) => ({
    ...guard,
    ...{ guard: name, asked_at: name === 'all' ? NOW : null },
  }));
  const policies = guards.map(({ guard: name }) => ({ name, owner: name === 'mine' ? 'team-web' : null }));
  const status = { ...QUIET, policies, guards, guard_watches: [] } as unknown as StatusDocument;
  const shown = (owner: string | undefined) => textOf(Guards({ status, owner, now: NOW })).match(/mine|all|elsewhere/g);
  expect(shown('team-web')).toEqual(['mine', 'all']);
  expect(shown(undefined)).toEqual(['mine', 'all', 'elsewhere']);
});

it('the runbook has paragraphs, lists and commands', () => {
  const page = String(
    runbookView('# Runbook\n\nOne\nline.\n\n## EbbDown\n\nDo:\n- this\n  first\n- `that`\n\n```sh\nebb status\n```\n'),
  );
  expect(page).toContain('<p class="prose">One\nline.</p>');
  expect(page).toMatch(
    /<p class="prose">Do:<.p><ul class="prose"><li>this\n {2}first<.li><li><code>that<.code><.li><.ul>/,
  );
  expect(page).toContain('<pre>ebb status\n</pre>');
});

it('the runbook links to its own sections, and names the files of others', () => {
  const page = String(
    runbookView(
      'Intro.\n\n## EbbDown\n\nSee [EbbBlind](#ebbblind), [scopes](deploy.md#keys), *Cost* and `ebb <status>`.',
    ),
  );
  expect(page).toContain(
    'See <a href="#ebbblind">EbbBlind</a>, scopes (deploy.md), <em>Cost</em> and <code>ebb &lt;status&gt;</code>.',
  );
});

describe('the address of a list', () => {
  it('leaves out the default order, and no filter that has its name', () => {
    expect(fleetLink({ q: '', owner: 'attention', sort: 'attention', page: 1 })).toBe('/?owner=attention');
  });
});
