import type { ControlApi, PermittedCall } from '../../ports/control-api.ts';
import type { RateBudget } from '../../ports/rate-budget.ts';
import { underDeadline } from './deadline.ts';
import { COMPUTE, COMPUTES, RESTART } from './routes.ts';

const ROUTES: Readonly<Record<PermittedCall, string>> = {
  listComputes: `GET ${COMPUTES}`,
  updateCompute: `PATCH ${COMPUTE}`,
  restartCompute: `POST ${RESTART}`,
};

/** A permit of the budget that is waited for ahead of a call: what the call needs besides, such as a lease, is taken after it. */
export function permitsOf(budget: RateBudget, closing: AbortSignal): ControlApi['permit'] {
  return async (call, { account, priority, signal }) => {
    const request = { account, route: ROUTES[call], priority };
    const wait = { deadlineMs: Number.POSITIVE_INFINITY, parents: [closing, signal] };
    const grant = await underDeadline(wait, (either) => budget.acquire(request, either));
    let isUsed = false;
    return {
      isUsed: () => isUsed,
      take() {
        if (isUsed) return undefined;
        isUsed = true;
        return grant;
      },
      giveBack() {
        if (!isUsed) grant.giveBack();
        isUsed = true;
      },
    };
  };
}
