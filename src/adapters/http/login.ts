import { createRemoteJWKSet, errors, jwtVerify } from 'jose';
import { isShowable } from '../../common/safe-text.ts';
import { MAX_CHARACTERS } from '../../ports/operator.ts';
import type { LoginProvider, TokenHolder } from '../../ports/roles.ts';
import type { Log } from '../../ports/telemetry.ts';
import type { Tokens } from './tokens.ts';

/** Only asymmetric algorithms: the keys that verify a token must not be able to make one. */
const ALGORITHMS = ['RS256', 'RS384', 'RS512', 'PS256', 'PS384', 'PS512', 'ES256', 'ES384', 'ES512', 'EdDSA'];
const JWT = /^[\w-]+\.[\w-]+\.[\w-]+$/;
/** Allowed difference between the clocks of provider and daemon, seconds. */
const CLOCK_TOLERANCE_S = 5;
/** Times for reading the provider's keys, milliseconds. A token of an unknown key leads to a read, at most one in `cooldownDuration`. */
const KEYS = { cacheMaxAge: 600_000, cooldownDuration: 30_000, timeoutDuration: 5_000 };

interface LoginOptions {
  provider: LoginProvider;
  log: Pick<Log, 'info' | 'error'>;
  now?: () => Date;
}

/** Also accepts the tokens (JWTs) of a login provider. A token without a group that has roles allows nothing. */
export function withLogin(tokens: Tokens, options: LoginOptions): Tokens {
  const verify = createVerifier(options);
  return {
    ...tokens,
    readingNeedsToken: true,
    holderOf: async (token) => (await tokens.holderOf(token)) ?? (JWT.test(token) ? verify(token) : undefined),
  };
}

/** Never rejects: a token that can't be verified has no holder. Unreadable keys are logged once. */
function createVerifier({ provider, log, now = () => new Date() }: LoginOptions) {
  const { issuer, audience, jwksUrl, nameClaim, groupsClaim, groups } = provider;
  const keys = createRemoteJWKSet(new URL(jwksUrl), KEYS);
  const checks = { issuer, audience, algorithms: ALGORITHMS, clockTolerance: CLOCK_TOLERANCE_S };
  let isFailing = false;

  return async (token: string): Promise<TokenHolder | undefined> => {
    try {
      const requiredClaims = ['exp', nameClaim];
      const { payload } = await jwtVerify(token, keys, { ...checks, requiredClaims, currentDate: now() });
      if (isFailing) log.info({ event: 'ebb.login_recovered' }, 'the keys of the login provider can be read again');
      isFailing = false;
      const { [nameClaim]: name, [groupsClaim]: claimed } = payload;
      if (typeof name !== 'string' || !isShowable(name) || name.length > MAX_CHARACTERS.owner) return undefined;
      const claimedGroups = [claimed].flat().filter((group) => typeof group === 'string');
      return { name, grants: claimedGroups.flatMap((group) => groups.get(group) ?? []) };
    } catch (error) {
      if (isInvalidToken(error)) return undefined;
      const message = `the keys of the login provider at ${jwksUrl} can't be read: none of its tokens is accepted`;
      if (!isFailing) log.error({ event: 'ebb.login_failed', err: error }, message);
      isFailing = true;
      return undefined;
    }
  };
}

/** True if the token is invalid; false if the keys can't be read. */
function isInvalidToken(error: unknown): boolean {
  return (
    error instanceof errors.JWTClaimValidationFailed ||
    error instanceof errors.JWTExpired ||
    error instanceof errors.JWTInvalid ||
    error instanceof errors.JWSInvalid ||
    error instanceof errors.JWSSignatureVerificationFailed ||
    error instanceof errors.JOSEAlgNotAllowed ||
    error instanceof errors.JOSENotSupported ||
    error instanceof errors.JWKSNoMatchingKey ||
    // A token must name its key if there are several: https://openid.net/specs/openid-connect-core-1_0.html#Signing
    error instanceof errors.JWKSMultipleMatchingKeys
  );
}
