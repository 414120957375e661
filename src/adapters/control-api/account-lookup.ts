import type { ApiResult, CallOptions } from '../../ports/control-api.ts';

export interface AccountLookup {
  /** A project was seen under this account. */
  remember(projectId: string, account: string): void;
  /** The account of a project; asks the accounts one after the other if it was never seen. */
  find(projectId: string, options?: CallOptions): Promise<ApiResult<string>>;
}

/**
 * Which account a project belongs to. With one account that needs no asking. With several, a project that was not yet listed (right
 * after a restart) is looked for: the first account that may read it is its own.
 */
export function createAccountLookup(options: {
  accounts: readonly string[];
  probe: (account: string, projectId: string, options?: CallOptions) => Promise<ApiResult<unknown>>;
}): AccountLookup {
  const { accounts, probe } = options;
  const known = new Map<string, string>();
  return {
    remember: (projectId, account) => void known.set(projectId, account),
    async find(projectId, callOptions) {
      const account = known.get(projectId) ?? (accounts.length === 1 ? accounts[0] : undefined);
      if (account !== undefined) return { ok: true, value: account };
      let refusal: ApiResult<string> = NO_ACCOUNT;
      for (const candidate of accounts) {
        const result = await probe(candidate, projectId, callOptions);
        if (result.ok) {
          known.set(projectId, candidate);
          return { ok: true, value: candidate };
        }
        // Trouble with one account outweighs the other's "not found": the project may be there.
        if (refusal === NO_ACCOUNT || (result.error.code !== 'not_found' && result.error.code !== 'forbidden')) {
          refusal = result;
        }
      }
      return refusal;
    },
  };
}

const NO_ACCOUNT: ApiResult<string> = {
  ok: false,
  error: { code: 'not_found', route: 'GET /projects/{project_id}/endpoints', message: 'no account is configured' },
};
