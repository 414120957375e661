import fc from 'fast-check';
import { describe, expect, it, onTestFinished } from 'vitest';
import { drawWeek } from '../../../src/cli/forecast/drawing.ts';
import { daysOf, displayZone } from '../../../src/cli/forecast/local-time.ts';
import { foresee } from '../../../src/cli/forecast/outlook.ts';
import { balanceLines, forecastJson, outlookTable, ownerTable } from '../../../src/cli/forecast/report.ts';
import { readSpan, type SpanFlags } from '../../../src/cli/forecast/span.ts';
import { drawSvg } from '../../../src/cli/forecast/svg.ts';
import type { Span } from '../../../src/domain/time/span.ts';
import { aCompute, aSchedule, at, compiled } from '../../support/builders.ts';
import { startEbb } from '../../support/ebb-process.ts';
import { makeFolder } from '../../support/platform.ts';
import { fleetFile, POLICIES } from '../fleet-files.ts';
import { PRICING, SPRING_WEEK, SUBJECTS, webAndDev } from './foreseen-fleet.ts';

const zone = 'Europe/Berlin';
const policies = compiled(...webAndDev());
const outlooks = foresee({ ...SPRING_WEEK, policies, subjects: SUBJECTS, pricing: PRICING });
const plain = { ...SPRING_WEEK, zone, columns: 80, color: false };

describe('what ebb forecast prints', () => {
  it('is a week in 80 columns without colours, the clocks put forward on Sunday', () => {
    expect(`\n${drawWeek(outlooks, plain)}\n`).toBe(`
                 Mon 23   Tue 24   Wed 25   Thu 26   Fri 27   Sat 28   Sun 29
                 0   12   0   12   0   12   0   12   0   12   0   12   0   12
web-shop         ▃▃████▃▃ ▃▃████▃▃ ▃▃████▃▃ ▃▃████▃▃ ▃▃████▃▃ ▃▃▃▃▃▃▃▃ ▃▃▃▃▃▃▃▃
ep-shop            ━━━━     ━━━━     ━━━━     ━━━━     ━━━━
web-blog         ▃▃████▃▃ ▃▃████▃▃ ▃▃████▃▃ ▃▃████▃▃ ▃▃████▃▃ ▃▃▃▃▃▃▃▃ ▃▃▃▃▃▃▃▃
ep-blog            ━━━━     ━━━━     ━━━━     ━━━━     ━━━━
dev              ▁▁▁▁▁▁▁▁ ▁▁▁▁▁▁▁▁ ▁▁▁▁▁▁▁▁ ▁▁▁▁▁▁▁▁ ▁▁▁▁▁▁▁▁ ▆▆▁▁▁▁▁▁ ▆▆▁▁▁▁▁▁
ep-dev

▁ 0.25   ▃ 0.25-1   ▆ 0.5-2   █ 1-4 CU   ━ never suspends
A cell is 3 hours: the largest size in them. Days and hours of Europe/Berlin.
`);
  });

  it('is a table with what it costs, and how that compares', () => {
    expect(`\n${outlookTable(outlooks)}\n\n${balanceLines(outlooks).join('\n')}\n`).toBe(`
project   compute  CU-hours  without ebb         price
web-shop  ep-shop    50–317      334–668   $5.30–33.60
web-blog  ep-blog    50–317        0–334   $5.30–33.60
dev       ep-dev       0–54        0–334    $0.00–5.72
all                 100–688    334–1,336  $10.60–72.93

Against the baseline: −648 to −234 CU-hours, −$68.69 to −$24.80.
Expected: no usage data, so from always asleep to always awake (ebb run collects it, --usage reads it).
Low: what may sleep always sleeps. High: all awake, at the maximum. The truth is between: docs/forecast.md.
`);
  });

  it('is a table by team first, where there are many computes', () => {
    const ownerOf = ({ projectName }: { projectName: string }) => (projectName === 'dev' ? 'team-dev' : 'team-web');
    expect(`\n${ownerTable(outlooks, ownerOf)}\n`).toBe(`
team      computes  CU-hours  without ebb         price
team-dev         1      0–54        0–334    $0.00–5.72
team-web         2   100–634    334–1,002  $10.60–67.20
all              3   100–688    334–1,336  $10.60–72.93
`);
  });

  it.each([
    ['of 40 computes', 40, [], false],
    ['of more', 41, [], true],
    ['of more with --all', 41, ['--all'], false],
    ['of more that are selected', 41, ['--select', 'projects=*'], false],
  ])('is by team or by compute: %s', async (_, count, flags, isByTeam) => {
    const computes = Array.from({ length: count }, (_, index) => [`web-${index}/ep-${index}`, {}]);
    const folder = await makeFolder({
      'fleet.json': fleetFile(Object.fromEntries(computes)),
      'policies.yaml': POLICIES,
    });
    onTestFinished(() => folder.remove());
    const args = ['forecast', '--fleet', 'fleet.json', '--policies', 'policies.yaml', '--days', '1', ...flags];
    const ebb = startEbb(args, { cwd: folder.path });
    expect([await ebb.ended, ebb.stderr()]).toEqual([0, '']);
    const has = (start: RegExp) => ebb.lines.some((line) => start.test(line));
    const byTeam = [has(/^team {2,}computes /), has(/^Each compute: ebb forecast --owner TEAM, or --all$/)];
    expect([...byTeam, has(/^web-7 +ep-7 /)]).toEqual([isByTeam, isByTeam, !isByTeam]);
  });

  it('fits into any terminal from 80 columns on, whatever the time and the names', () => {
    const names = fc.string({ unit: fc.constantFrom('a', 'é', '字', '\u001b', '\n', '\u202e'), maxLength: 40 });
    const starts = fc.integer({ min: SPRING_WEEK.fromMs, max: SPRING_WEEK.fromMs + 400 * 86_400_000 });
    fc.assert(
      fc.property(
        names,
        starts,
        fc.integer({ min: 1, max: 20 * 86_400 }),
        fc.integer({ min: 80, max: 250 }),
        (name, fromMs, seconds, columns) => {
          const span = { fromMs, toMs: fromMs + seconds * 1000 };
          const subjects = [{ compute: aCompute({ projectName: name }) }];
          const drawn = drawWeek(foresee({ ...span, policies, subjects, pricing: PRICING }), {
            ...plain,
            ...span,
            columns,
          });
          expect(drawn).not.toMatch(/\p{Cf}|(?!\n)\p{Cc}/u);
          expect(Math.max(...drawn.split('\n').map((line) => Array.from(line).length))).toBeLessThanOrEqual(columns);
        },
      ),
      { numRuns: 60 },
    );
  });

  it('draws seven days and twenty computes at most, and says so', () => {
    const many = foresee({
      ...{ fromMs: SPRING_WEEK.fromMs, toMs: SPRING_WEEK.toMs + 1 },
      ...{ policies, pricing: PRICING, subjects: Array.from({ length: 21 }, () => ({ compute: aCompute() })) },
    });
    const drawn = drawWeek(many, { ...plain, toMs: SPRING_WEEK.toMs + 1 });
    expect(drawn).toContain('Only the first 7 days are drawn.');
    expect(drawn).toContain('Only the first 20 of 21 computes are drawn: name some, or see --svg and --json.');
  });

  it('only adds colour where it is asked for colour', () => {
    const coloured = drawWeek(outlooks, { ...plain, color: true });
    const escapes = new RegExp(`${String.fromCharCode(27)}\\[\\d+m`, 'g');
    expect(coloured.replace(escapes, '').replace(/ +$/gm, '')).toBe(drawWeek(outlooks, plain));
  });

  it('is JSON with instants in UTC', () => {
    const span = { fromMs: at('2026-03-23T16:00:00Z'), toMs: at('2026-03-23T18:00:00Z') };
    const [first] = foresee({ ...span, policies, subjects: SUBJECTS, pricing: PRICING });
    expect(first && forecastJson(span, [first])).toEqual({
      from: '2026-03-23T16:00:00Z',
      to: '2026-03-23T18:00:00Z',
      computes: [
        {
          project_id: 'p-one',
          compute_id: 'ep-shop',
          segments: [
            {
              from: '2026-03-23T16:00:00Z',
              to: '2026-03-23T17:00:00Z',
              min_cu: 1,
              max_cu: 4,
              suspend_timeout_seconds: -1,
              policies: ['office-hours'],
            },
            {
              from: '2026-03-23T17:00:00Z',
              to: '2026-03-23T18:00:00Z',
              min_cu: 0.25,
              max_cu: 1,
              suspend_timeout_seconds: 300,
              policies: ['office-hours'],
            },
          ],
          cu_hours: { low: 1, high: 5 },
          cu_hours_without: { low: 4, high: 8 },
          cu_hours_expected: null,
          usd: { low: 0.106, high: 0.53 },
        },
      ],
    });
  });

  it('says whose price is not known', () => {
    const accounts = PRICING.accounts.map(({ plan: _, ...account }) => account);
    const unpriced = foresee({ ...SPRING_WEEK, policies, subjects: SUBJECTS, pricing: { ...PRICING, accounts } });
    expect(outlookTable(unpriced)).not.toContain('$');
    expect(balanceLines(unpriced).at(-1)).toBe('default: price unknown: set plan: in ebb.yaml');
  });
});

describe('the SVG', () => {
  it('is well-formed, has a title, no script, and shows names as text, whatever is in them', () => {
    const compute = aCompute({ projectName: `<script>&"' \u0007]]>`, computeId: 'ep-evil' });
    const svg = drawSvg(
      foresee({ ...SPRING_WEEK, policies, subjects: [{ compute }, ...SUBJECTS], pricing: PRICING }),
      plain,
    );
    expect(tagsOf(svg)).toEqual(new Set(['svg', 'title', 'desc', 'style', 'rect', 'text', 'line', 'g']));
    expect(svg).toContain(
      '<title id="title">Sizes of 4 computes, Mon 23 Mar 2026, 00:00 to Mon 30 Mar 2026, 00:00 (Europe/Berlin)</title>',
    );
    expect(svg).toContain('>&lt;script&gt;&amp;&quot;&#39; ?]]&gt;</text>');
    expect(svg).toContain(
      '<title>Mon 23 Mar 2026, 08:00 to Mon 23 Mar 2026, 18:00: 1-4 CU, never suspends (office-hours)</title>',
    );
  });

  const sizes = (count: number) => Array.from({ length: count }, () => ['4', '1', '0.25']).flat();
  const drawn = (span: Span, subjects = SUBJECTS) =>
    drawSvg(foresee({ ...span, policies, subjects, pricing: PRICING }), { ...plain, ...span });

  it('has a size axis in CU for each row, and computes of which the same is foreseen in one row', () => {
    const svg = drawn(SPRING_WEEK, [
      ...SUBJECTS,
      ...Array.from({ length: 10 }, (_, index) => ({
        compute: aCompute({ projectName: `web-${index}`, computeId: `ep-${index}` }),
      })),
    ]);
    expect(textsOf(svg, 'dim size')).toEqual(['CU', ...sizes(2)]);
    expect(textsOf(svg)).toEqual(['12 computes', 'dev']);
    expect(textsOf(svg, 'dim')).toContain('web-shop, web-blog, web-0, +9');
    expect(svg).toContain('<title>web-shop / ep-shop, web-blog / ep-blog, web-0 / ep-0, web-1 / ep-1,');
    expect(textsOf(svg, 'dim').filter((text) => text.startsWith('CU-h'))).toEqual(['CU-h each', 'CU-h']);
  });

  it('has a time axis above and below, in local time, and at most fourteen lines', () => {
    const days = (svg: string) => textsOf(svg, 'dim').filter((text) => /^\d\d:|\d [A-Z]|^[A-Z][a-z]{2} \d/.test(text));
    const [one = { compute: aCompute() }] = SUBJECTS;
    const twice = (texts: readonly string[]) => texts.flatMap((text) => [text, text]);
    const noons = ['Mon 23', 'Tue 24', 'Wed 25', 'Thu 26', 'Fri 27', 'Sat 28', 'Sun 29'].flatMap((day) => [
      day,
      '12:00',
    ]);
    expect(days(drawn(SPRING_WEEK, [one]))).toEqual(twice(noons));
    const evening = { fromMs: at('2026-03-28T21:30:00Z'), toMs: at('2026-03-29T03:00:00Z') };
    expect(days(drawn(evening, [one]))).toEqual(twice(['23:00', 'Sun 29', '01:00', '03:00', '04:00']));
    const year = { fromMs: at('2026-03-01T00:00:00Z'), toMs: at('2027-03-01T00:00:00Z') };
    expect(days(drawn(year, [one])).slice(0, 4)).toEqual(twice(['31 Mar', '30 Apr']));
  });
});

/** What stands in the drawing, by its classes. */
function textsOf(svg: string, look?: string): string[] {
  const texts = svg.matchAll(
    /<text x="[^"]*" y="[^"]*"(?: class="([^"]*)")?>([^<]*)|<text class="([^"]*)"[^>]*>([^<]*)/g,
  );
  return [...texts].flatMap(([, before, one, after, other]) =>
    (before ?? after) === look ? [one ?? other ?? ''] : [],
  );
}

/** Names of all elements; throws where the text is no well-formed XML of elements, attributes and text. */
function tagsOf(xml: string): Set<string> {
  const entity = '&(?:amp|lt|gt|quot|#39);';
  const token = new RegExp(`<(/?)([a-z]+)((?: [\\w:-]+="(?:[^<&"]|${entity})*")*)(/?)>|(?:[^<>&]|${entity})+`, 'gy');
  const names = new Set<string>();
  const open: string[] = [];
  let end = 0;
  for (const [text, closes, name, , empty] of xml.matchAll(token)) {
    end += text.length;
    if (name === undefined) continue;
    names.add(name);
    if (closes) expect(open.pop()).toBe(name);
    else if (!empty) open.push(name);
  }
  expect({ rest: xml.slice(end, end + 80), open }).toEqual({ rest: '', open: [] });
  return names;
}

describe('the days', () => {
  it('tile the time asked for, in every zone, with 23 and 25 hours too', () => {
    const zones = fc.constantFrom(
      'UTC',
      zone,
      'America/Sao_Paulo',
      'Asia/Beirut',
      'Australia/Lord_Howe',
      'Africa/Cairo',
    );
    const start = fc.date({ min: new Date('2012-01-01'), max: new Date('2030-01-01'), noInvalidDate: true });
    fc.assert(
      fc.property(
        zones,
        start,
        fc.integer({ min: 1, max: 900 }),
        fc.constantFrom(1, 2, 3, 6, 24),
        (zone, from, hours, hoursPerCell) => {
          const span = { fromMs: from.getTime(), toMs: from.getTime() + hours * 3_600_000 };
          const cells = daysOf(span, { zone, hoursPerCell }).flatMap((day) => day.cells);
          expect(cells[0]?.fromMs).toBeLessThanOrEqual(span.fromMs);
          expect(cells.at(-1)?.toMs).toBeGreaterThanOrEqual(span.toMs);
          for (const [index, cell] of cells.slice(1).entries()) expect(cell.fromMs).toBe(cells[index]?.toMs);
        },
      ),
    );
  });
});

describe('the time asked for', () => {
  const nowMs = at('2026-03-27T22:30:31Z');
  const iso = (flags: SpanFlags) => {
    const { fromMs, toMs } = readSpan(flags, { zone, nowMs });
    return [fromMs, toMs].map((ms) => new Date(ms).toISOString().slice(0, 16));
  };

  it('is seven days of the zone from now on, or what is said', () => {
    expect(iso({})).toEqual(['2026-03-27T22:30', '2026-04-03T21:30']);
    expect(iso({ from: '2026-03-28', days: '2' })).toEqual(['2026-03-27T23:00', '2026-03-29T22:00']);
    expect(iso({ from: '2026-03-28T08:00Z', to: '2026-03-28T12:00' })).toEqual([
      '2026-03-28T08:00',
      '2026-03-28T11:00',
    ]);
  });

  it.each<[SpanFlags, string]>([
    [{ days: '0' }, '--days: "0" is not a whole number from 1 to 366'],
    [{ days: '1e3' }, '--days: "1e3" is not a whole number from 1 to 366'],
    [{ days: '3', to: '2026-04-01' }, '--days and --to both say where it ends; leave one of them out'],
    [
      { from: 'monday' },
      '--from: "monday" is not an ISO instant; write 2026-03-02, 2026-03-02T08:00 or 2026-03-02T08:00:00Z',
    ],
    [
      { to: '08:00' },
      '--to: "08:00" is not an ISO instant; write 2026-03-02, 2026-03-02T08:00 or 2026-03-02T08:00:00Z',
    ],
    [
      { from: '2026-03-02', to: '2026-03-02' },
      '--to: 2026-03-02T00:00:00.000+01:00 is not after 2026-03-02T00:00:00.000+01:00, where it starts',
    ],
    [
      { from: '2026-01-01', to: '2028-01-01' },
      '--to: 2028-01-01T00:00:00.000+01:00 is more than 366 days after 2026-01-01T00:00:00.000+01:00; ask for less',
    ],
  ])('that makes no sense is told in one line: %o', (flags, message) => {
    expect(() => readSpan(flags, { zone, nowMs })).toThrow(message);
  });

  it('is shown in the zone that is named, else in that of the first window, else in UTC', () => {
    expect(displayZone({}, [policies.set])).toBe(zone);
    expect(displayZone({ zone: 'Asia/Tokyo' }, [policies.set])).toBe('Asia/Tokyo');
    expect(displayZone({}, [{ policies: [], sources: new Map(), hash: '' }])).toBe('UTC');
    const ofTeams = {
      ...policies.set,
      policies: policies.set.policies.map((policy) => ({ ...policy, team: 'team-a' })),
    };
    const withUtc = { ...ofTeams, policies: [...ofTeams.policies, aSchedule({ windows: [], team: 'team-b' })] };
    expect(displayZone({ owner: 'team-b' }, [withUtc])).toBe('UTC');
    expect(displayZone({ owner: 'team-a' }, [withUtc])).toBe(zone);
    expect(() => displayZone({ zone: 'Mars/X' }, [])).toThrow('--zone: "Mars/X" is not a time zone');
  });
});
