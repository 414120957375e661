import { expect, it } from 'vitest';
import { Notices } from '../../src/adapters/http/page/notices.tsx';
import { Overview } from '../../src/adapters/http/page/overview.tsx';
import { MAX_LISTED, type StatusDocument } from '../../src/ports/documents.ts';
import { emptyFleet } from './empty-fleet.ts';
import { QUIET, textOf } from './quiet-status.ts';

const NOW = '2026-11-22T19:00:00Z';

const failing = (count: number, messageOf: (index: number) => string) =>
  Array.from({ length: count }, (_, index) => ({
    ...{ project_id: `p-${index}`, compute_id: `ep-${index}`, message: messageOf(index) },
  }));

function noticesOf(status: object): string[] {
  const page = String(Notices({ status: { ...QUIET, ...status } as unknown as StatusDocument, now: NOW }));
  return page.split('<div class="notice').slice(1);
}

it('a problem that many computes have is said once, with their count, and all of them can be opened', () => {
  const notices = noticesOf({ degraded: failing(13, () => 'PATCH: 503') });
  expect(notices).toHaveLength(1);
  const [notice = ''] = notices;
  expect(textOf(notice)).toMatch(/Degraded 13 computes: PATCH: 503Which: Degradedep-0ep-1ep-2/);
  expect(notice).toMatch(/<details id="all-degraded"><summary>/);
  expect(notice.match(/<li><a href="\/computes\/ep-\d+">/g)).toHaveLength(13);
});

it('of different messages the most frequent one is shown, and each with its compute below', () => {
  const messages = ['needs 90', 'needs 120', 'needs 120'];
  const [notice = '', ...others] = noticesOf({ unmet_headroom: failing(3, (index) => messages[index] ?? '') });
  expect(others).toEqual([]);
  expect(textOf(notice)).toMatch(
    /Not enough connections 3 computes, such as ep-1: needs 120Which.*ep-1: needs 120ep-2: needs 120ep-0: needs 90$/,
  );
});

it('a problem of one compute is one line, with what ends it', () => {
  const fight = { project_id: 'p', compute_id: 'ep-fight', fields: ['size'] };
  const [notice = '', ...others] = noticesOf({ stopped_fights: [fight] });
  expect(others).toEqual([]);
  expect(textOf(notice)).toMatch(/Left alone ep-fight: size changed back too often; to go on: ebb release ep-fight$/);
  expect(notice).not.toContain('<details');
  const [two = ''] = noticesOf({ stopped_fights: [fight, { ...fight, compute_id: 'ep-two' }] });
  expect(textOf(two)).toContain('ep-two: size changed back too often; to go on: ebb release ep-two');
});

it('what needs a person comes first, and a list that was cut is no exact count', () => {
  const degraded = failing(MAX_LISTED, () => 'PATCH: 503');
  const status = { ...QUIET, degraded } as unknown as StatusDocument;
  const query = { q: '', page: 1 };
  const page = textOf(Overview({ status, fleet: emptyFleet(NOW), costs: null, query }));
  expect(page).toMatch(/What needs a person100 or more computes are degradedWhat it costs/);
  expect(textOf(noticesOf({ degraded })[0])).toContain('100 or more computes: PATCH: 503');
});
