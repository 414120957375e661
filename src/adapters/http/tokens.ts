import { createHash, timingSafeEqual } from 'node:crypto';
import type { Log } from '../../ports/telemetry.ts';
import { type NamedToken, readTokenFile, tokenFileVersion } from './token-file.ts';

/** Who has a token: a person, or whoever shares it. */
export interface TokenHolder {
  name: string | undefined;
}

/** Who may tell ebb something, and, where tokens are set, who may read. */
export interface Tokens {
  /** True if reading wants a token as well. */
  guardReading: boolean;
  /** Undefined for a token that nobody has. Takes as long for each that is tried. */
  holderOf(token: string): TokenHolder | undefined;
  /** What is wrong with the file of tokens, in one line. */
  problem(): string | undefined;
}

export interface TokensOptions {
  log: Pick<Log, 'info' | 'error'>;
  /** Shared by everybody. */
  shared?: string | undefined;
  /** A file of tokens; read anew when it changes. While it is broken, none of its tokens counts. */
  file?: string | undefined;
  /** For commands on this machine: it allows everything and makes nobody ask for a token. */
  local: string;
  /** Hears of each token, so that no log shows it. */
  hide?: (token: string) => void;
}

interface Known {
  version: string;
  problem: string | undefined;
  tokens: readonly { digest: Buffer; name: string | undefined }[];
}

export function createTokens({ log, shared, file, local, hide = () => {} }: TokensOptions): Tokens {
  const fixed = known([{ token: local }, ...(shared === undefined ? [] : [{ token: shared }])], hide);
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
      // A token that is shared and somebody's own as well is that person's.
      const holder = holders.find(({ name }) => name !== undefined) ?? holders[0];
      return holder && { name: holder.name };
    },
    problem: () => (file === undefined ? undefined : fromFile(file).problem),
  };
}

function known(tokens: readonly NamedToken[], hide: (token: string) => void): Known['tokens'] {
  return tokens.map(({ token, name }) => {
    hide(token);
    return { digest: digestOf(token), name };
  });
}

/** Of equal length for all, as a comparison in constant time needs it. */
function digestOf(token: string): Buffer {
  return createHash('sha256').update(token).digest();
}
