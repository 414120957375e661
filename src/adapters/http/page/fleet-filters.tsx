import type { CostsDocument } from '../../../ports/cost-documents.ts';
import {
  FLEET_GROUPS,
  FLEET_ORDERS,
  type FleetDocument,
  type FleetQuery,
  type FleetTotals,
} from '../../../ports/status-page.ts';
import { addressOf, costWords, numberWords, plural, Select, Table } from './parts.tsx';

const ORDER_WORDS: Record<(typeof FLEET_ORDERS)[number], string> = {
  attention: 'what needs attention first',
  compute: 'by compute',
  project: 'by project',
  size: 'largest first',
  next: 'next change first',
};
const STATUSES = ['enforced', 'observed', 'held', 'frozen', 'not_loaded', 'degraded', 'orphaned', 'unmatched'];

interface FiltersProps {
  query: FleetQuery;
  fleet: FleetDocument;
}

/** The filters and the order of the list. */
export function Filters({ query, fleet }: FiltersProps) {
  const { q, owner, status, sort = 'attention', group } = query;
  const chosen = (['project', 'policy', 'reason'] as const).filter((key) => query[key] !== undefined);
  const isNarrowed = q !== '' || owner !== undefined || status !== undefined || chosen.length > 0;
  return (
    <search>
      <form method="get" action="/">
        <span class="choice">
          <label for="q">Find</label>
          <input id="q" name="q" type="search" value={q} autocomplete="off" placeholder="id, project, policy …" />
        </span>
        <Choice name="status" label="Status" value={status} any="any status" options={STATUSES} />
        <Choice name="owner" label="Owner" value={owner} any="any owner" options={fleet.owners} />
        <details class="more" open={group !== undefined || sort !== 'attention'}>
          <summary>Totals and order</summary>
          <Choice name="group" label="Totals" value={group} any="no totals" options={FLEET_GROUPS} />
          <Select
            name="sort"
            label="Order"
            value={sort}
            options={FLEET_ORDERS.map((order) => [order, ORDER_WORDS[order]])}
          />
        </details>
        {chosen.map((key) => (
          <>
            <input type="hidden" name={key} value={query[key]} />
            <span class="chip">
              {key} {query[key]}
            </span>
          </>
        ))}
        <button type="submit">Show</button>
        {isNarrowed && <a href="/">Show all</a>}
      </form>
    </search>
  );
}

/** A filter with an option for `any` value. */
export function Choice(props: {
  name: string;
  label: string;
  value: string | undefined;
  any: string;
  options: readonly string[];
}) {
  const { name, label, value, any, options } = props;
  const all = value === undefined || options.includes(value) ? options : [...options, value];
  const pairs = all.map((option) => [option, option] as const);
  return <Select name={name} label={label} value={value ?? ''} options={[['', any], ...pairs]} />;
}

/** Totals by owner or project, with links to their computes. */
export function Groups({ fleet: { groups }, query, costs }: FiltersProps & { costs: CostsDocument | null }) {
  const { group } = query;
  if (group === undefined) return null;
  const showsCosts = costs !== null && group === 'owner';
  return (
    <Table
      caption={`By ${group}: what the active computes may scale between now`}
      head={[
        group === 'owner' ? 'Owner' : 'Project',
        'Computes',
        'Active',
        'CU now',
        ...(showsCosts ? ['This month'] : []),
      ]}
      rows={groups
        .map(({ name, ...totals }) => [
          <a href={fleetLink({ ...query, group: undefined, [group]: name, page: 1 })}>{name}</a>,
          numberWords(totals.computes),
          numberWords(totals.active),
          cuWords(totals),
          ...(showsCosts ? [costsOf(costs, name)] : []),
        ])
        .concat(showsCosts ? withoutComputes(costs, groups) : [])}
    />
  );
}

/** An owner's costs in all accounts. */
export function costsOf({ owners }: CostsDocument, name: string): string {
  const costs = owners.filter(({ owner }) => owner === name);
  return costs.length === 0 ? '–' : costs.map(costWords).join(', ');
}

/** Rows for costs of owners without computes in the fleet. */
function withoutComputes(costs: CostsDocument, groups: FleetDocument['groups']) {
  const shown = new Set(groups.map(({ name }) => name));
  const names = new Set(costs.owners.map(({ owner }) => owner).filter((owner) => !shown.has(owner)));
  return [...names].map((name) => [<span class="dim">{name}</span>, '0', '0', '–', costsOf(costs, name)]);
}

/** `12 to 48 CU`. */
export function cuWords({ min_cu: low, max_cu: high }: FleetTotals): string {
  const [least, most] = [low, high].map(numberWords);
  return least === most ? `${least} CU` : `${least} to ${most} CU`;
}

export function captionOf({ fleet: { known, matched, page, pages }, query }: FiltersProps): string {
  const found = matched === known ? plural(known, 'compute') : `${numberWords(matched)} of ${plural(known, 'compute')}`;
  return `${found}, ${ORDER_WORDS[query.sort ?? 'attention']}${pages > 1 ? `; page ${page} of ${pages}` : ''}`;
}

export function fleetLink({ page, ...query }: FleetQuery): string {
  const sort = query.sort === 'attention' ? undefined : query.sort;
  return addressOf('/', { ...query, sort, page: page > 1 ? page : undefined });
}
