/** Permissions of a token's holder: everything, or what its roles allow. */
import type { Context } from 'hono';
import { isShowable } from '../../common/safe-text.ts';
import { type Caller, type DaemonOperator, MOST_CHARACTERS, type Refusal } from '../../ports/operator.ts';
import type { Role, TokenHolder } from '../../ports/roles.ts';
import type { Log } from '../../ports/telemetry.ts';

/** The computes that a request concerns, as the operator's `teamsOf` takes them. */
export type Targets = readonly string[] | 'all';

/** Finds the computes of a request by the id in its path or its body, neither of which is checked yet. */
export type TargetsOf = (given: { id: string | undefined; body: unknown }) => Targets;

/** Why the holder of a token may not do something; undefined where that is allowed. What it is about must be known to be in a scope. */
export async function whyForbidden(
  { name, grants }: TokenHolder,
  role: Role,
  targets: Targets,
  teamsOf: DaemonOperator['teamsOf'],
): Promise<string | undefined> {
  if (!grants) return undefined;
  if (grants.length === 0) return `${name} is in no group that login of ebb.yaml gives a role`;
  if (role === 'read') return undefined;
  const own = grants.filter((grant) => grant.role === role);
  if (own.some(({ team }) => team === undefined)) return undefined;
  const who = name ?? 'this token';
  if (own.length === 0) return `${who} has no role "${role}"`;
  const teams = own.flatMap(({ team }) => team ?? []);
  const allowed = `${who} may do this only in the scope of ${teams.join(', ')}`;
  if (targets === 'all' || targets.length === 0) return allowed;
  for (const target of new Set(targets)) {
    const scopes = await teamsOf(role === 'approve' ? 'set' : 'compute', target);
    if (!teams.some((team) => scopes.includes(team))) return `${allowed}, and ${target.slice(0, 210)} is not in it`;
  }
  return undefined;
}

/** The caller for the audit. The name that a person gives counts where the token has none. */
export function callerOf({ name, grants }: TokenHolder, context: Context, owner = ''): Caller {
  const requestId = String(context.get('requestId'));
  const teams = teamsOfHolder(grants);
  if (name !== undefined) return { who: name, verified: true, requestId, ...(teams && { teams }) };
  const from = context.req.header('from') ?? '';
  const isUsable = from.length <= MOST_CHARACTERS.owner && isShowable(from);
  return { who: isUsable ? from : owner, requestId, ...(teams && { teams }) };
}

/** Undefined for one that may hold any compute. */
function teamsOfHolder(grants: TokenHolder['grants']): string[] | undefined {
  const own = grants?.filter(({ role }) => role === 'operate') ?? [];
  const teams = own.flatMap(({ team }) => team ?? []);
  return teams.length > 0 && teams.length === own.length ? [...new Set(teams)] : undefined;
}

/** Leaves in log and audit who tried what. */
export async function noteForbidden(
  { operator, log }: { operator: Pick<DaemonOperator, 'refused'>; log: Pick<Log, 'warn'> },
  caller: Caller,
  { role, ...refusal }: Refusal & { role: Role },
): Promise<void> {
  const { what, message, targets } = refusal;
  log.warn(
    { event: 'ebb.request_forbidden', who: caller.who, role, what, targets, request_id: caller.requestId },
    `${what} was refused: ${message}`,
  );
  await operator.refused(refusal, caller);
}
