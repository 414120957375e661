import { createHash, timingSafeEqual } from 'node:crypto';
import { readFileSync, statSync } from 'node:fs';
import type { Context } from 'hono';
import { BEARER_TOKEN_FORM, isBearerToken } from '../../common/bearer-token.ts';
import { errorCode } from '../../common/errors.ts';
import type { Result } from '../../common/result.ts';
import { isShowable } from '../../common/safe-text.ts';
import {
  type Caller,
  type DaemonOperator,
  MAX_CHARACTERS,
  NOT_STAGED_HERE,
  type Refusal,
} from '../../ports/operator.ts';
import { parseGrants, ROLES, type Role, type TokenHolder } from '../../ports/roles.ts';
import type { Log } from '../../ports/telemetry.ts';

/** Checks tokens. Commands always need one, reads only if `readingNeedsToken`. */
export interface Tokens {
  readingNeedsToken: boolean;
  /** Undefined for an unknown token. Comparing with the daemon's own tokens takes the same time for every token. */
  holderOf(token: string): TokenHolder | undefined | Promise<TokenHolder | undefined>;
  /** The problem of the token file, in one line. */
  problem(): string | undefined;
}

interface LoadedFile {
  version: string;
  problem: string | undefined;
  tokens: readonly Digested[];
}

type Digested = { digest: Buffer } & TokenHolder;

export function createTokens(options: {
  log: Pick<Log, 'info' | 'error'>;
  /** A token that everybody shares. */
  shared?: string | undefined;
  /** A file of tokens, reloaded when it changes. While it is invalid, none of its tokens is accepted. */
  file?: string | undefined;
  /** The token of commands on this machine: allows everything. */
  local: string;
  /** Called with each token, to redact it in logs. */
  hide?: (token: string) => void;
}): Tokens & { holderOf(token: string): TokenHolder | undefined } {
  const { log, shared, file, local, hide = () => {} } = options;
  const ofSettings = digested(
    [local, ...(shared === undefined ? [] : [shared])].map((token) => ({ token, name: undefined })),
    hide,
  );
  let last: LoadedFile | undefined;

  function fromFile(path: string): LoadedFile {
    const version = tokenFileVersion(path);
    if (last?.version === version) return last;
    const read = readTokenFile(path);
    if (!read.ok && read.problem !== last?.problem)
      log.error({ event: 'ebb.tokens_refused' }, `${read.problem}; until then none of its tokens is accepted`);
    if (read.ok && last)
      log.info({ event: 'ebb.tokens_reloaded', tokens: read.value.length }, 'the token file was reloaded');
    last = read.ok
      ? { version, problem: undefined, tokens: digested(read.value, hide) }
      : { version, problem: read.problem, tokens: [] };
    return last;
  }

  return {
    readingNeedsToken: shared !== undefined || file !== undefined,
    holderOf(token) {
      const digest = digestOf(token);
      const all = file === undefined ? ofSettings : [...ofSettings, ...fromFile(file).tokens];
      // Every token is compared, so that the duration reveals nothing.
      const holders = all.filter((candidate) => timingSafeEqual(candidate.digest, digest));
      // If a person's token equals the shared one, the caller is that person.
      const holder = holders.find(({ name }) => name !== undefined) ?? holders[0];
      return holder && { name: holder.name, ...(holder.grants && { grants: holder.grants }) };
    },
    problem: () => (file === undefined ? undefined : fromFile(file).problem),
  };
}

function digested(tokens: readonly NamedToken[], hide: (token: string) => void): Digested[] {
  return tokens.map(({ token, ...holder }) => {
    hide(token);
    return { digest: digestOf(token), ...holder };
  });
}

/** Digests have equal lengths, which a comparison in constant time needs. */
function digestOf(token: string): Buffer {
  return createHash('sha256').update(token).digest();
}

interface NamedToken extends TokenHolder {
  token: string;
}

const MAX_BYTES = 64 * 1024;

/** One token per line: `NAME: TOKEN`, `NAME [ROLES]: TOKEN` or `TOKEN`; `#` begins a comment. A problem never contains a token. */
function readTokenFile(path: string): Result<readonly NamedToken[]> {
  let text: string;
  try {
    text = readFileSync(path, 'utf8');
  } catch (error) {
    const problem = `the token file ${path} can't be read (${errorCode(error)}); check the path and its permissions`;
    return { ok: false, problem };
  }
  if (text.length > MAX_BYTES) return { ok: false, problem: `the token file ${path} is larger than 64 KiB` };
  return parseTokens(text, path);
}

/** A text that changes when the file is changed or replaced; the error's code if it can't be read. */
function tokenFileVersion(path: string): string {
  try {
    const { mtimeMs, ctimeMs, ino, size } = statSync(path);
    return `${mtimeMs} ${ctimeMs} ${ino} ${size}`;
  } catch (error) {
    return errorCode(error);
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
      return { ok: false, problem: `${where}: the same token is in an earlier line; make another one` };
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
  if (!isShowable(name) || name.length > MAX_CHARACTERS.owner || (roles !== undefined && !grants)) return undefined;
  return { token, name, ...(grants && { grants }) };
}

/** The targets of a request, for the operator's `teamsOf`. `own`: the operator limits the request to the caller's scope. */
export type Targets = readonly string[] | 'all' | 'own';

/** Finds the targets in the path or the body of a request, which are not validated yet. */
export type TargetsOf = (request: { id: string | undefined; body: unknown }) => Targets;

/** A message if the token's roles don't allow the request. A role of a team allows only targets that are known to be in the team's scope. */
export async function whyForbidden(
  { name, grants }: TokenHolder,
  role: Role,
  targets: Targets,
  teamsOf: DaemonOperator['teamsOf'],
): Promise<string | undefined> {
  if (!grants) return undefined;
  if (grants.length === 0) return `${name} is in no group that login of ebb.yaml gives a role`;
  if (role === 'read') return undefined;
  const ofRole = grants.filter((grant) => grant.role === role);
  if (ofRole.some(({ team }) => team === undefined)) return undefined;
  const who = name ?? 'this token';
  if (ofRole.length === 0) return `${who} has no role "${role}"`;
  const teams = ofRole.flatMap(({ team }) => team ?? []);
  const allowed = `${who} may do this only in the scope of ${teams.join(', ')}`;
  if (targets === 'own') return undefined;
  if (targets === 'all' || targets.length === 0) return allowed;
  for (const target of new Set(targets)) {
    const scopes = await teamsOf(TARGET_OF[role], target);
    const place = target.slice(0, 210);
    if (!scopes) return `${allowed}, and whether ${place} is in it is not known yet: ${NOT_YET[role]}`;
    if (!teams.some((team) => scopes.includes(team))) return `${allowed}, and ${place} is not in it`;
  }
  return undefined;
}

/** The kind of a role's targets. */
const TARGET_OF = { operate: 'compute', freeze: 'freeze', approve: 'set' } as const;

/** Why a daemon may not know a target that others know. */
const NOT_YET = {
  operate: 'this daemon has not read all projects since its start; try again in a minute',
  freeze: 'try again in a minute',
  approve: NOT_STAGED_HERE,
} as const;

/** The caller for the audit: named by the token, or else by the request. */
export function callerOf({ name, grants }: TokenHolder, context: Context, owner = ''): Caller {
  const requestId = String(context.get('requestId'));
  const [teams, freezes] = [teamsOfHolder(grants, 'operate'), teamsOfHolder(grants, 'freeze')];
  const limits = { ...(teams && { teams }), ...(freezes && { freezes }) };
  if (name !== undefined) return { who: name, verified: true, requestId, ...limits };
  const from = context.req.header('from') ?? '';
  const isUsable = from.length <= MAX_CHARACTERS.owner && isShowable(from);
  return { who: isUsable ? from : owner, requestId, ...limits };
}

/** The teams whose scopes limit a role; undefined if nothing limits it, or if there are no grants for it. */
function teamsOfHolder(grants: TokenHolder['grants'], limited: Role): string[] | undefined {
  const ofRole = grants?.filter(({ role }) => role === limited) ?? [];
  const teams = ofRole.flatMap(({ team }) => team ?? []);
  return teams.length > 0 && teams.length === ofRole.length ? [...new Set(teams)] : undefined;
}

/** Writes a refused request to the log and to the audit. */
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
