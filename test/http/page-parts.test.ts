import { describe, expect, it } from 'vitest';
import { DecisionList } from '../../src/adapters/http/page/decisions.tsx';
import { HoldList } from '../../src/adapters/http/page/hold-form.tsx';
import { Message } from '../../src/adapters/http/page/parts.tsx';
import { runbookView } from '../../src/adapters/http/page/small-views.tsx';
import { Summary } from '../../src/adapters/http/page/summary.tsx';
import type { DecisionDocument, HoldDocument, StatusDocument } from '../../src/ports/documents.ts';
import { emptyFleet } from './empty-fleet.ts';

const NOW = '2026-11-22T19:00:00Z';
/** What a page shows, without its elements. */
const textOf = (markup: unknown) => String(markup).replace(/<[^>]+>/g, '');

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

  it('name of a hold beside the list what it sets, until when, who set it and why', () => {
    const hold = {
      ...{ id: 'h-1', compute_id: 'ep-shop', owner: 'ann', reason: 'import', expires_at: '2026-11-22T21:00:00Z' },
      ...{ size: { min_cu: 2, max_cu: 4 }, suspend_timeout_seconds: null, freeze: false, limited: null },
    } as unknown as HoldDocument;
    const list = HoldList({ holds: [hold], now: NOW, none: 'None.' });
    expect(textOf(list)).toBe('ep-shop 2-4 CU until 21:00 in 2 hann: import Release the hold on ep-shop');
    expect(String(list)).toContain('<a href="/holds/h-1">');
  });

  it('sum up how many computes wait for a change, without what is only observed', () => {
    const lists = { freezes: [], degraded: [], stopped_fights: [], computes: {}, budgets: [], policies: [] };
    const status = { ...lists, mode: 'enforce', set_hash: null, revision: null, costs: null };
    const waiting = [
      { reason: 'frozen', computes: 55 },
      { reason: 'observe', computes: 120 },
    ];
    const summary = (of: object) =>
      textOf(
        Summary({
          status: { ...status, ...of } as unknown as StatusDocument,
          fleet: emptyFleet(NOW),
          owner: undefined,
        }),
      );
    expect(summary({ waiting })).toContain('within an hour. 55 computes wait for a change. Active now');
    expect(summary({ waiting: waiting.slice(1) })).not.toContain('wait for');
  });
});

it('the runbook links to its own sections, and names the files of others', () => {
  const page = String(
    runbookView('Intro.\n\n## EbbDown\n\nSee [EbbBlind](#ebbblind), [scopes](deploy.md#keys) and `ebb <status>`.'),
  );
  expect(page).toContain(
    'See <a href="#ebbblind">EbbBlind</a>, scopes (deploy.md) and <code>ebb &lt;status&gt;</code>.',
  );
});
