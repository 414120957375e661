import type { ControlApi, PermittedCall } from '../../ports/control-api.ts';
import type { RateBudget } from '../../ports/rate-budget.ts';
import { underDeadline } from './deadline.ts';
import { COMPUTE, COMPUTES, RESTART } from './routes.ts';

const ROUTES: Readonly<Record<PermittedCall, string>> = {
  listComputes: `GET ${COMPUTES}`,
  updateCompute: `PATCH ${COMPUTE}`,
  restartCompute: `POST ${RESTART}`,
};

/** Leave that is older counts for another second than that in which the request would be sent. Milliseconds. */
const SERVES_MS = 1_000;

/** A permit of the budget that is waited for ahead of a call: what the call needs besides, such as a lease, is taken after it. */
export function permitsOf(budget: RateBudget, closing: AbortSignal): ControlApi['permit'] {
  return async (call, { account, priority, signal }) => {
    const request = { account, route: ROUTES[call], priority };
    const wait = { deadlineMs: Number.POSITIVE_INFINITY, parents: [closing, signal] };
    const { waitedMs, giveBack } = await underDeadline(wait, (either) => budget.acquire(request, either));
    const grantedMs = performance.now();
    let isUsed = false;
    return {
      isUsed: () => isUsed,
      take() {
        const serves = !isUsed && performance.now() - grantedMs <= SERVES_MS;
        isUsed = true;
        if (!serves) return undefined;
        return { waitedMs };
      },
      giveBack() {
        if (!isUsed) giveBack();
        isUsed = true;
      },
    };
  };
}
