import { chart, list, NO_SOURCE, NONE_DROPPED, ofComputes, ofOwnedPolicies, type Panel } from './parts.ts';

const LEAST_FREE = `bottomk(10, ${ofComputes('ebb_connection_headroom_ratio')})`;

const ERRORS = 'sum by (source, code) (rate(ebb_connection_source_errors_total[$__rate_interval])) * 3600';

/** How many connections are left, where they are counted, and what counting costs. */
export function connections(): Panel[] {
  return [
    list({
      title: 'Ten lowest headrooms',
      description:
        'Free share of the connections that users can have, of the computes with the least. Soon refused at 0 %.',
      queries: [{ expr: LEAST_FREE }],
      value: 'free',
      unit: 'percentunit',
      ifEmpty: NO_SOURCE,
      width: 8,
    }),
    chart({
      title: 'Connections against max_connections',
      description: 'Of the ten computes that use the largest share: in use and accepted.',
      queries: [
        { expr: `${ofComputes('ebb_connections')} and ${LEAST_FREE}`, legend: '{{compute}}' },
        { expr: `${ofComputes('ebb_max_connections')} and ${LEAST_FREE}`, legend: '{{compute}} max' },
      ],
      stepped: true,
      ifEmpty: NO_SOURCE,
      width: 8,
    }),
    chart({
      title: 'Connections dropped by changes',
      description:
        'Clients that were connected when a change of ebb restarted their compute, an hour, by policy. An estimate.',
      queries: [
        {
          expr: `sum by (policy) ${ofOwnedPolicies('rate(ebb_connections_dropped_total{policy=~"$policy"}[$__rate_interval])')} * 3600`,
          legend: '{{policy}}',
        },
      ],
      ifEmpty: NONE_DROPPED,
      width: 4,
    }),
    chart({
      title: 'Computes that were not counted',
      description:
        'By source and why, an hour; 0 for a source without an error. docs/connections.md says what to do about each code.',
      queries: [
        {
          expr: `${ERRORS} > 0 or sum by (source) (${ERRORS}) == 0`,
          legend: '{{source}} {{code}}',
        },
      ],
      ifEmpty: NO_SOURCE,
      width: 4,
    }),
  ];
}
