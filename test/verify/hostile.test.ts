/** A service that lies, others on the project, and trouble on the way: no verdict is wrong. */
import { describe, expect, it } from 'vitest';
import type { Exchange, WireRequest } from '../../src/adapters/control-api/http-transport.ts';
import { ACCOUNT_FACTS, FACT_NAMES, type FactName } from '../../src/domain/compute/account-facts.ts';
import { type Dice, diceOf } from '../simulation/plan.ts';
import { COMPUTE, type Hook, reportOf, type Service, serviceOf, type Truth } from './service.ts';

const USUAL = Object.fromEntries(FACT_NAMES.map((fact) => [fact, ACCOUNT_FACTS[fact][0]])) as Truth;
const OTHER = Object.fromEntries(FACT_NAMES.map((fact) => [fact, ACCOUNT_FACTS[fact].at(-1)])) as Truth;

// biome-ignore lint/suspicious/noExplicitAny: lies are told about answers of every shape
type Body = any;

/** Changes the body of answers. */
function lie(tell: (body: Body, request: WireRequest) => void): Hook {
  return async (request, send) => {
    const exchange = await send();
    if (exchange.kind !== 'answer' || exchange.status >= 300) return exchange;
    const body = JSON.parse(exchange.text);
    tell(body, request);
    return { ...exchange, text: JSON.stringify(body) };
  };
}

const endpointsOf = (body: Body): Body[] => [...(body.endpoints ?? []), ...(body.endpoint ? [body.endpoint] : [])];
const later = (text: string, seconds: number) => new Date(Date.parse(text) + seconds * 1000).toISOString();

/** Each lie, and the facts that it is about. */
const LIES: readonly { name: string; about: readonly FactName[]; hook: () => Hook }[] = [
  {
    name: 'a PATCH is answered and not made',
    about: ['idle_resize', 'timeout_change', 'list_updated_at', 'compute_updated_at'],
    hook: () => {
      let shown: Body;
      return async (request, send) => {
        if (request.method === 'PATCH') {
          const { endpoint } = JSON.parse(request.body ?? '{}');
          return answer(200, { endpoint: { ...shown, ...endpoint }, operations: [] });
        }
        const exchange = await send();
        if (exchange.kind === 'answer' && exchange.text.includes('"endpoints"'))
          [shown] = JSON.parse(exchange.text).endpoints;
        return exchange;
      };
    },
  },
  {
    name: 'the answer to a PATCH has the old settings',
    about: [],
    hook: () =>
      lie((body, { method }) => {
        if (method === 'PATCH')
          Object.assign(body.endpoint, { autoscaling_limit_max_cu: 2, suspend_timeout_seconds: 240 });
      }),
  },
  {
    name: 'the list of operations is empty',
    about: [],
    hook: () => lie((body, { path }) => path.includes('/operations') && Object.assign(body, { operations: [] })),
  },
  {
    name: 'answers name no operations',
    about: [],
    hook: () => lie((body, { method }) => method !== 'GET' && Object.assign(body, { operations: [] })),
  },
  {
    name: 'every compute is shown as awake',
    about: ['idle_resize', 'list_updated_at', 'compute_updated_at'],
    hook: () => lie((body) => endpointsOf(body).forEach((one) => void Object.assign(one, { current_state: 'active' }))),
  },
  {
    name: 'a compute starts anew in each reading',
    about: [],
    hook: () => {
      let at = 0;
      return lie((body) => {
        at += 1;
        for (const one of endpointsOf(body)) one.started_at = later('2026-11-23T09:00:00Z', at);
      });
    },
  },
  {
    name: 'updated_at of a compute stands still in readings, and moves in answers',
    about: ['compute_updated_at'],
    hook: () =>
      lie((body, { method }) => {
        if (method === 'GET') for (const one of endpointsOf(body)) one.updated_at = '2026-11-20T00:00:00Z';
      }),
  },
  {
    name: 'the list has always just changed',
    about: ['list_updated_at'],
    hook: () => {
      let at = 0;
      return lie((body) => {
        at += 7;
        for (const one of body.projects ?? []) one.updated_at = later('2026-11-23T09:00:00Z', at);
      });
    },
  },
  {
    name: 'last_active is always now, and later',
    about: ['last_active'],
    hook: () => {
      let at = 0;
      return lie((body) => {
        at += 60;
        for (const one of endpointsOf(body)) one.last_active = later('2026-11-23T09:00:00Z', at);
      });
    },
  },
  {
    name: 'a rate limit is a word',
    about: ['limits'],
    hook: () => async (_request, send) => {
      const exchange = await send();
      return exchange.kind === 'answer' ? { ...exchange, rateLimit: 'plenty' } : exchange;
    },
  },
  {
    name: 'a restart is answered and not made',
    about: [],
    hook: () => async (request, send) =>
      request.path.endsWith('/restart') ? answer(200, { endpoint: {}, operations: [] }) : send(),
  },
];

function answer(status: number, body: object, more: { retryAfter?: string } = {}): Exchange {
  return { kind: 'answer', status, text: JSON.stringify(body), ...more };
}

/** Facts that were said and are not true. */
async function wrongFacts(service: Service, truth: Truth, options: Parameters<Service['verify']>[0]) {
  const before = service.settings();
  const report = reportOf(await service.verify(options));
  const said = report.facts.filter(({ observed }) => observed !== undefined);
  const wrong = said.filter(({ fact, observed }) => observed !== truth[fact]);
  return { report, before, said: said.length, wrong: wrong.map(({ fact, observed }) => `${fact}: ${observed}`) };
}

describe.each(LIES)('$name', ({ about, hook }) => {
  it.each([
    ['usual', USUAL],
    ['other', OTHER],
  ] as const)('no wrong fact where the facts are the %s ones', async (_name, truth) => {
    const { report, wrong } = await wrongFacts(serviceOf(truth), truth, { hook: hook() });
    expect(wrong).toEqual([]);
    for (const fact of about)
      expect(report.facts.find((one) => one.fact === fact)).toMatchObject({ verdict: 'not_observable' });
  });
});

const RUNS = Number(process.env.EBB_VERIFY_RUNS ?? 6);
const FIRST_SEED = Number(process.env.EBB_SEED ?? 1);

function truthOf(dice: Dice): Truth {
  return Object.fromEntries(FACT_NAMES.map((fact) => [fact, dice.pick<string>(ACCOUNT_FACTS[fact])])) as Truth;
}

/** Requests that are slow, refused or lost. */
function troubled(dice: Dice, service: Service): Hook {
  return async (_request, send) => {
    await service.time.wait(dice.is(0.1) ? dice.between(500, 4_000) : dice.between(20, 400));
    if (dice.is(0.04)) return answer(429, { message: 'slow down' }, { retryAfter: '1' });
    if (dice.is(0.03)) return answer(503, { message: 'later' });
    if (dice.is(0.02)) return answer(500, { message: 'trouble' });
    const exchange = await send();
    await service.time.wait(dice.between(20, 300));
    return dice.is(0.01) ? { kind: 'failure', code: 'timeout', mayHaveArrived: true, message: 'lost' } : exchange;
  };
}

/** Another client on the same project, every minute or so. Returns how to stop it. */
function meddle(dice: Dice, { emulator: { platform }, time, projectId }: Service): () => void {
  let isOver = false;
  const change = (changes: object) => platform.run({ kind: 'update_compute', projectId, computeId: COMPUTE, changes });
  const acts = [
    () => change({ minCu: 0.25, maxCu: dice.pick([0.25, 0.5, 1, 2]) }),
    () => change({ suspendTimeoutSeconds: dice.pick([60, 120, 300, 600]) }),
    () => platform.run({ kind: 'connect', computeId: COMPUTE, connections: 1, reconnects: dice.is(0.5), forMs: 2_000 }),
    () => platform.run({ kind: 'restart_compute', projectId, computeId: COMPUTE }),
    () => platform.run({ kind: 'rename_project', projectId, name: `ebb-verify-${dice.index(3)}` }),
  ];
  const round = () => {
    if (isOver) return;
    dice.pick(acts)();
    time.at(time.now() + dice.between(5_000, 180_000), round);
  };
  time.at(time.now() + dice.between(0, 120_000), round);
  return () => {
    isOver = true;
  };
}

it(`${RUNS} runs with latency, 429, 5xx, lost answers and another client: no wrong verdict`, {
  timeout: 60_000 + RUNS * 10_000,
}, async () => {
  const wrong: string[] = [];
  let said = 0;
  for (let seed = FIRST_SEED; seed < FIRST_SEED + RUNS; seed += 1) {
    const dice = diceOf(seed);
    const truth = truthOf(dice);
    const service = serviceOf(truth, { state: dice.is(0.5) ? 'idle' : 'active' });
    const stop = meddle(dice, service);
    const result = await wrongFacts(service, truth, { hook: troubled(dice, service), seed });
    stop();
    said += result.said;
    wrong.push(...result.wrong.map((what) => `seed ${seed}: ${what}`));
  }
  process.stdout.write(
    `${RUNS} runs from seed ${FIRST_SEED}: ${said} of ${RUNS * FACT_NAMES.length} facts said, ${wrong.length} wrong\n`,
  );
  expect(wrong).toEqual([]);
  expect(said).toBeGreaterThan(0);
});
