/** A small fleet and its policies, for commands that look ahead. */

import { DEFAULT_PRICES } from '../../../src/domain/compute/cost.ts';
import { CONNECTION_PROFILES } from '../../../src/domain/connections/connection-profile.ts';
import type { Policy } from '../../../src/domain/policy/policy.ts';
import type { Account } from '../../../src/settings/accounts.ts';
import { aCompute, aSchedule, aWindow } from '../../support/builders.ts';
import { aSelector } from '../../support/selectors.ts';

const ZONE = 'Europe/Berlin';

/** Mon–Fri from this hour to 18:00 in Berlin the web computes never sleep. */
export function webAndDev({ webFromHour = 8 }: { webFromHour?: number } = {}): Policy[] {
  return [
    aSchedule({
      name: 'office-hours',
      select: aSelector({ projects: ['web-*'] }),
      windows: [
        {
          at: [aWindow({ zone: ZONE, startMinute: webFromHour * 60 })],
          size: { minCu: 1, maxCu: 4 },
          suspendTimeoutSeconds: -1,
        },
      ],
    }),
    aSchedule({
      name: 'dev-days',
      select: aSelector({ projects: ['dev'] }),
      windows: [
        { at: [aWindow({ zone: ZONE, days: [6, 7], startMinute: 0, endMinute: 240 })], size: { minCu: 0.5, maxCu: 2 } },
      ],
      otherwise: { size: { minCu: 0.25, maxCu: 0.25 } },
    }),
  ];
}

export const SUBJECTS = [
  {
    compute: aCompute({ projectName: 'web-shop', computeId: 'ep-shop' }),
    baseline: { minCu: 2, maxCu: 4, suspendTimeoutSeconds: -1 },
  },
  { compute: aCompute({ projectName: 'web-blog', computeId: 'ep-blog' }) },
  { compute: aCompute({ projectName: 'dev', computeId: 'ep-dev', suspendTimeoutSeconds: 60 }) },
];

const account: Account = {
  name: 'default',
  apiKey: undefined,
  plan: 'launch',
  profile: CONNECTION_PROFILES.specification,
  verified: {},
};

export const PRICING = { accounts: [account], prices: DEFAULT_PRICES };

/** The week in which Berlin puts the clocks forward, on Sunday. */
export const SPRING_WEEK = {
  fromMs: Date.parse('2026-03-23T00:00:00+01:00'),
  toMs: Date.parse('2026-03-30T00:00:00+02:00'),
};
