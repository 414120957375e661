/**
 * All alerts together, over series that a model makes of 300 computes: an ordinary week, and ten kinds of trouble on an ordinary day. No
 * daemon made them, and the rules were changed together with the model: they hold behaviour fast, and prove nothing about real fleets.
 */
import { it } from 'vitest';
import { seededRandom } from '../../src/domain/random.ts';
import { describeWith } from '../support/requirements.ts';
import { checkRules, type Series } from './rules-test.ts';

const SEED = 27;
const DAY = 24 * 60;
const COMPUTES = 300;
const [MORNING, EVENING, DEADLINE] = [8 * 60, 18 * 60 + 30, 20 * 60 + 30];
/** The trouble of a day begins at this minute, an hour after the morning's boundary. */
const TROUBLE = 9 * 60;

/** The minutes of a day of trouble that Prometheus sees. */
const SEEN = { from: MORNING - 20, until: TROUBLE + 60 };

const ONE = 'job="ebb", instance="one"';

/** A week is seven days from Monday on; a single day is a Monday. */
function ordinary(days: number): Series {
  const random = seededRandom(SEED);
  const between = (low: number, high: number) => low + Math.floor(random() * (high - low + 1));
  const minutes = days * DAY;
  const rates: Series = {};
  const gauges: Series = {};
  const rate = (name: string, minute: number, by: number) => {
    rates[name] ??= new Array<number>(minutes).fill(0);
    const values = rates[name];
    if (minute < minutes) values[minute] = (values[minute] ?? 0) + by;
  };
  const gauge = (name: string, normal: number) => {
    gauges[name] = new Array<number>(minutes).fill(normal);
  };
  /** Restarts of a boundary, 30 in a minute as `at_once: 10%` allows, with their operations; a few changes come late. */
  const boundary = (minute: number, changes: number, restarts: number) => {
    for (let left = restarts, at = minute; left > 0; left -= 30, at += 1) {
      rate(`ebb_restarts_total{${ONE}, cause="boundary"}`, at, Math.min(30, left));
      rate(`ebb_operations_total{${ONE}, action="start_compute", status="finished"}`, at, Math.min(30, left));
    }
    rate(`ebb_operations_total{${ONE}, action="apply_config", status="finished"}`, minute, changes);
    rate(
      `ebb_boundary_lateness_seconds_bucket{${ONE}, le="30"}`,
      minute,
      changes - between(0, Math.floor(changes / 30)),
    );
    rate(`ebb_boundary_lateness_seconds_bucket{${ONE}, le="+Inf"}`, minute, changes);
  };
  for (let day = 0; day < days; day += 1) {
    const at = (minute: number) => day * DAY + minute;
    if (day % 7 < 5) {
      boundary(at(MORNING), 210, between(20, 60));
      boundary(at(EVENING), between(120, 180), 0);
      boundary(at(DEADLINE), between(10, 40), between(10, 40));
    }
    // Headroom, manual changes whose respect ends, and on Wednesday a small edit of a policy.
    for (let more = between(1, 3); more > 0; more -= 1)
      rate(`ebb_restarts_total{${ONE}, cause="other"}`, at(between(0, DAY - 1)), 1);
    if (day % 7 === 2) rate(`ebb_restarts_total{${ONE}, cause="other"}`, at(11 * 60), 6);
    rate(`ebb_connection_source_errors_total{${ONE}, source="shop", code="timeout"}`, at(between(0, DAY - 1)), 1);
  }
  // One operation of the week fails.
  rate(`ebb_operations_total{${ONE}, action="apply_config", status="failed"}`, 4 * DAY + MORNING, 1);
  for (let minute = 0; minute < minutes; minute += 1)
    rate(`ebb_api_requests_total{${ONE}, route="GET /projects", code="200"}`, minute, 2);
  gauge(`up{${ONE}}`, 1);
  gauge('up{job="ebb", instance="two"}', 1);
  gauge(`ebb_computes{${ONE}, status="enforced"}`, COMPUTES);
  gauge(`ebb_api_key_valid{${ONE}, account="default"}`, 1);
  gauge(`ebb_policy_load_success{${ONE}}`, 1);
  gauge(`ebb_staged_changes{${ONE}}`, 0);
  gauge(`ebb_write_blocked{${ONE}, reason="superseded"}`, 0);
  gauge(`ebb_write_blocked{${ONE}, reason="clock_off"}`, 0);
  gauge(`ebb_connection_headroom_ratio{${ONE}, project="p", compute="ep-1"}`, 0.4);
  gauge(`ebb_compute_info{${ONE}, project="p", compute="ep-1", project_name="web", owner="web"}`, 1);
  gauge(`ebb_api_budget_used_ratio{${ONE}, account="default"}`, 0.2);
  gauge(`ebb_notifications_oldest_seconds{${ONE}, receiver="ops"}`, 0);
  gauge(`ebb_operations_in_flight{${ONE}, action="start_compute"}`, 0);
  for (const reason of ['deadline', 'waiting_for_idle', 'retry_later', 'degraded', 'fight_stopped', 'at_once'])
    gauge(`ebb_computes_pending{${ONE}, reason="${reason}", owner="web"}`, 0);
  const set = (name: string, from: number, until: number, value: number) => gauges[name]?.fill(value, from, until);
  for (let day = 0; day < days; day += 1) {
    const at = (minute: number) => day * DAY + minute;
    set(`ebb_operations_in_flight{${ONE}, action="start_compute"}`, at(MORNING), at(MORNING + 3), 30);
    set(`ebb_computes_pending{${ONE}, reason="at_once", owner="web"}`, at(MORNING), at(MORNING + 3), 20);
    set(`ebb_computes_pending{${ONE}, reason="waiting_for_idle", owner="web"}`, at(EVENING), at(DEADLINE), 30);
    // Policies with `then: skip` leave some as they are overnight.
    set(`ebb_computes_pending{${ONE}, reason="deadline", owner="web"}`, at(DEADLINE), at(DAY), 8);
    set(`ebb_computes_pending{${ONE}, reason="retry_later", owner="web"}`, at(MORNING), at(MORNING + 2), 3);
    set(`ebb_api_budget_used_ratio{${ONE}, account="default"}`, at(MORNING), at(MORNING + 4), 0.99);
    set(`ebb_notifications_oldest_seconds{${ONE}, receiver="ops"}`, at(MORNING), at(MORNING + 1), 40);
  }
  // An upgrade on Tuesday, one daemon after the other; until both are new the older writes nothing.
  set(`up{${ONE}}`, DAY + 600, DAY + 602, 0);
  set('up{job="ebb", instance="two"}', DAY + 604, DAY + 606, 0);
  set(`ebb_write_blocked{${ONE}, reason="superseded"}`, DAY + 602, DAY + 606, 1);
  for (const [name, values] of Object.entries(rates)) {
    let total = 0;
    rates[name] = values.map((by) => {
      total += by;
      return total;
    });
  }
  return { ...rates, ...gauges };
}

interface Trouble {
  what: string;
  alert: string;
  /** Until the alert fires, minutes. */
  afterMinutes: number;
  /** Changes the series from {@link TROUBLE} on. */
  set: Record<string, (before: number, minute: number) => number>;
}

const TROUBLES: Trouble[] = [
  {
    what: 'no daemon runs',
    alert: 'EbbDown',
    afterMinutes: 5,
    set: { [`up{${ONE}}`]: () => 0, 'up{job="ebb", instance="two"}': () => 0 },
  },
  {
    what: 'the control API is down',
    alert: 'EbbBlind',
    afterMinutes: 4,
    set: { [`ebb_api_requests_total{${ONE}, route="GET /projects", code="200"}`]: () => 2 * TROUBLE },
  },
  {
    what: 'the key is refused',
    alert: 'EbbKeyRejected',
    afterMinutes: 2,
    set: { [`ebb_api_key_valid{${ONE}, account="default"}`]: () => 0 },
  },
  {
    what: 'an edited policy restarts 10 a minute',
    alert: 'EbbRestartStorm',
    afterMinutes: 2,
    set: { [`ebb_restarts_total{${ONE}, cause="other"}`]: (before, minute) => before + Math.min(90, 10 * minute) },
  },
  {
    what: 'connections run out',
    alert: 'EbbHeadroomLow',
    afterMinutes: 5,
    set: { [`ebb_connection_headroom_ratio{${ONE}, project="p", compute="ep-1"}`]: () => 0.03 },
  },
  {
    what: 'a policy file is broken',
    alert: 'EbbPoliciesNotLive',
    afterMinutes: 15,
    set: { [`ebb_policy_load_success{${ONE}}`]: () => 0 },
  },
  {
    what: 'operations fail',
    alert: 'EbbOperationFailed',
    afterMinutes: 3,
    set: { [`ebb_operations_total{${ONE}, action="apply_config", status="failed"}`]: (_, minute) => minute },
  },
  {
    what: 'changes are refused',
    alert: 'EbbComputesDegraded',
    afterMinutes: 5,
    set: { [`ebb_computes_pending{${ONE}, reason="degraded", owner="web"}`]: () => 4 },
  },
  {
    what: 'operations hang',
    alert: 'EbbOperationStuck',
    afterMinutes: 10,
    set: { [`ebb_operations_in_flight{${ONE}, action="start_compute"}`]: () => 3 },
  },
  {
    what: 'a receiver is down',
    alert: 'EbbNotificationsStuck',
    afterMinutes: 21,
    set: { [`ebb_notifications_oldest_seconds{${ONE}, receiver="ops"}`]: (_, minute) => 60 * minute },
  },
];

function withTrouble({ set }: Trouble): Series {
  const series = ordinary(1);
  for (const [name, change] of Object.entries(set)) {
    const values = series[name] ?? new Array<number>(DAY).fill(0);
    series[name] = values.map((value, at) => (at < TROUBLE ? value : change(value, at - TROUBLE)));
  }
  return Object.fromEntries(
    Object.entries(series).map(([name, values]) => [name, values.slice(SEEN.from, SEEN.until)]),
  );
}

/** What fired in all that time, by severity. */
const fired = (severity: string, days: number) =>
  `count(count by (alertname) (max_over_time(ALERTS{alertstate="firing", severity="${severity}"}[${days}d])))`;

describeWith('promtool', 'the alerts', () => {
  it('call nobody in an ordinary week, in which one operation failed and was tried again', () => {
    const atMinute = 7 * DAY - 1;
    const checks = [
      { expr: fired('critical', 7), atMinute },
      { expr: fired('warning', 7), atMinute },
    ];
    checkRules({ name: 'week', series: ordinary(7), checks, everyText: '2m' });
  }, 240_000);

  it.each(TROUBLES)('find that $what: $alert after $afterMinutes min, and nothing else critical', (trouble) => {
    const { alert, afterMinutes } = trouble;
    const firing = `count(count by (alertname) (ALERTS{alertstate="firing", alertname="${alert}"}))`;
    const others = `count(ALERTS{alertstate="firing", severity="critical", alertname!="${alert}"})`;
    const atMinute = TROUBLE - SEEN.from + afterMinutes;
    const checks = [
      { expr: firing, atMinute: atMinute - 1 },
      { expr: firing, atMinute, value: 1 },
      { expr: others, atMinute: atMinute + 30 },
    ];
    checkRules({ name: alert, series: withTrouble(trouble), checks });
  });
});
