import { createHash, timingSafeEqual } from 'node:crypto';
import { readFileSync, statSync } from 'node:fs';
import type { Context } from 'hono';
import { BEARER_TOKEN_FORM, isBearerToken } from '../../common/bearer-token.ts';
import type { Result } from '../../common/result.ts';
import { isShowable } from '../../common/safe-text.ts';
import { type Caller, type DaemonOperator, MOST_CHARACTERS, type Refusal } from '../../ports/operator.ts';
import { parseGrants, ROLES, type Role, type TokenHolder } from '../../ports/roles.ts';
import type { Log } from '../../ports/telemetry.ts';

/** Checks tokens: callers need one to change something and, where tokens are set, to read. */
export interface Tokens {
  /** True if reading wants a token as well. */
  guardReading: boolean;
  /** Undefined for an unknown token. Takes the same time for every token. */
  holderOf(token: string): TokenHolder | undefined | Promise<TokenHolder | undefined>;
  /** The problem of the token file, in one line. */
  problem(): string | undefined;
}

interface TokensOptions {
  log: Pick<Log, 'info' | 'error'>;
  /** Shared by everybody. */
  shared?: string | undefined;
  /** A file of tokens; reloaded when it changes. While it is invalid, none of its tokens is accepted. */
  file?: string | undefined;
  /** For commands on this machine: it allows everything, and nobody is asked for a token. */
  local: string;
  /** Called with each token, so that no log shows it. */
  hide?: (token: string) => void;
}

interface Known {
  version: string;
  problem: string | undefined;
  tokens: readonly ({ digest: Buffer } & TokenHolder)[];
}

/** Tokens that are compared with known ones, at once. */
interface KnownTokens extends Tokens {
  holderOf(token: string): TokenHolder | undefined;
}

export function createTokens({ log, shared, file, local, hide = () => {} }: TokensOptions): KnownTokens {
  const fixed = known(
    [local, ...(shared === undefined ? [] : [shared])].map((token) => ({ token, name: undefined })),
    hide,
  );
  let last: Known | undefined;

  function fromFile(path: string): Known {
    const version = tokenFileVersion(path);
    if (last?.version === version) return last;
    const read = readTokenFile(path);
    if (!read.ok && read.problem !== last?.problem)
      log.error({ event: 'ebb.tokens_refused' }, `${read.problem}; until then none of its tokens counts`);
    if (read.ok && last)
      log.info({ event: 'ebb.tokens_reloaded', tokens: read.value.length }, 'the token file was reloaded');
    last = {
      version,
      problem: read.ok ? undefined : read.problem,
      tokens: known(read.ok ? read.value : [], hide),
    };
    return last;
  }

  return {
    guardReading: shared !== undefined || file !== undefined,
    holderOf(token) {
      const digest = digestOf(token);
      const all = file === undefined ? fixed : [...fixed, ...fromFile(file).tokens];
      // Each is compared, whichever it is: how long it takes must tell nothing.
      const holders = all.filter((one) => timingSafeEqual(one.digest, digest));
      // A token that is both shared and a person's is that person's.
      const holder = holders.find(({ name }) => name !== undefined) ?? holders[0];
      return holder && { name: holder.name, ...(holder.grants && { grants: holder.grants }) };
    },
    problem: () => (file === undefined ? undefined : fromFile(file).problem),
  };
}

function known(tokens: readonly NamedToken[], hide: (token: string) => void): Known['tokens'] {
  return tokens.map(({ token, ...holder }) => {
    hide(token);
    return { digest: digestOf(token), ...holder };
  });
}

/** Of equal length for all, as a comparison in constant time needs it. */
function digestOf(token: string): Buffer {
  return createHash('sha256').update(token).digest();
}

/** A token, and whose it is. */
interface NamedToken extends TokenHolder {
  token: string;
}

const MOST_BYTES = 64 * 1024;

/** The tokens of a file: a line each, `NAME: TOKEN`, `NAME [ROLES]: TOKEN` or `TOKEN`; `#` begins a comment. A problem never holds a token. */
function readTokenFile(path: string): Result<readonly NamedToken[]> {
  let text: string;
  try {
    text = readFileSync(path, 'utf8');
  } catch (error) {
    return {
      ok: false,
      problem: `the token file ${path} can't be read (${codeOf(error)}); check the path and its permissions`,
    };
  }
  if (text.length > MOST_BYTES) return { ok: false, problem: `the token file ${path} is larger than 64 KiB` };
  return parseTokens(text, path);
}

function codeOf(error: unknown): string {
  return error instanceof Error && 'code' in error ? String(error.code) : 'error';
}

/** Another text for another state of the file, also where another one is moved into its place. */
function tokenFileVersion(path: string): string {
  try {
    const { mtimeMs, ctimeMs, ino, size } = statSync(path);
    return `${mtimeMs} ${ctimeMs} ${ino} ${size}`;
  } catch (error) {
    return codeOf(error);
  }
}

function parseTokens(text: string, path: string): Result<readonly NamedToken[]> {
  const tokens: NamedToken[] = [];
  for (const [index, written] of text.split(/\r?\n/).entries()) {
    const line = written.trim();
    if (line === '' || line.startsWith('#')) continue;
    const where = `${path}:${index + 1}`;
    const parsed = parseLine(line);
    if (!parsed) return { ok: false, problem: `${where}: ${EXPECTED}` };
    if (tokens.some(({ token }) => token === parsed.token)) {
      return { ok: false, problem: `${where}: the same token stands in a line above; make another one` };
    }
    tokens.push(parsed);
  }
  return tokens.length > 0
    ? { ok: true, value: tokens }
    : { ok: false, problem: `${path}: holds no token; ${EXPECTED}` };
}

const EXPECTED = `write NAME: TOKEN, or NAME [ROLE, ROLE TEAM]: TOKEN with roles of ${ROLES.join(', ')}, and a token of ${BEARER_TOKEN_FORM}; make one with: openssl rand -hex 32`;

function parseLine(line: string): NamedToken | undefined {
  const [last = '', ...before] = line.split(':').toReversed();
  const token = last.trim();
  if (!isBearerToken(token) || before.length > 1) return undefined;
  const [written] = before;
  if (written === undefined) return { token, name: undefined };
  const [, name = '', roles] = /^\s*([^[\]]*?)\s*(?:\[([^[\]]*)\]\s*)?$/.exec(written) ?? [];
  const grants = roles === undefined ? undefined : parseGrants(roles);
  if (!isShowable(name) || name.length > MOST_CHARACTERS.owner || (roles !== undefined && !grants)) return undefined;
  return { token, name, ...(grants && { grants }) };
}

/* Permissions of a token's holder: everything, or what its roles allow. */

/** What a request concerns, as the operator's `teamsOf` takes it. `own`: as much of it as the caller may; the operator limits it. */
export type Targets = readonly string[] | 'all' | 'own';

/** Finds the computes of a request by the id in its path or its body, neither of which is checked yet. */
export type TargetsOf = (given: { id: string | undefined; body: unknown }) => Targets;

/**
 * The reason why the holder of a token may not do something; undefined where it is allowed. The request's computes must be known to be in
 * a scope.
 */
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
  if (targets === 'own') return undefined;
  if (targets === 'all' || targets.length === 0) return allowed;
  for (const target of new Set(targets)) {
    const scopes = await teamsOf(TARGET_OF[role], target);
    if (!teams.some((team) => scopes.includes(team))) return `${allowed}, and ${target.slice(0, 210)} is not in it`;
  }
  return undefined;
}

/** What the requests of a role are about. */
const TARGET_OF = { operate: 'compute', freeze: 'freeze', approve: 'set' } as const;

/** The caller for the audit. The name that a person gives counts where the token has none. */
export function callerOf({ name, grants }: TokenHolder, context: Context, owner = ''): Caller {
  const requestId = String(context.get('requestId'));
  const [teams, freezes] = [teamsOfHolder(grants, 'operate'), teamsOfHolder(grants, 'freeze')];
  const limits = { ...(teams && { teams }), ...(freezes && { freezes }) };
  if (name !== undefined) return { who: name, verified: true, requestId, ...limits };
  const from = context.req.header('from') ?? '';
  const isUsable = from.length <= MOST_CHARACTERS.owner && isShowable(from);
  return { who: isUsable ? from : owner, requestId, ...limits };
}

/** The teams to whose scope a role is limited; undefined for one that is not. */
function teamsOfHolder(grants: TokenHolder['grants'], of: Role): string[] | undefined {
  const own = grants?.filter(({ role }) => role === of) ?? [];
  const teams = own.flatMap(({ team }) => team ?? []);
  return teams.length > 0 && teams.length === own.length ? [...new Set(teams)] : undefined;
}

/** Writes a refused request to log and audit. */
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
