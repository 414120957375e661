import type { Context } from 'hono';
import type { HoldDocument, Readiness } from '../../../ports/documents.ts';
import type { OperatorError, OperatorResult } from '../../../ports/operator.ts';
import { STATUS } from '../api/answer.ts';
import { ReleaseForm, type TokenNeed, type Written } from './hold-form.tsx';
import { wholePage } from './layout.tsx';
import { ComputeLink, Minute } from './parts.tsx';
import { holdWords } from './words.ts';

interface ReleaseViewProps {
  hold: HoldDocument;
  written?: Written;
  problem?: string;
  token: TokenNeed;
}

/** `/holds/ID`: a hold, and the form that ends it. */
export function releaseView({ hold, written = {}, problem, token }: ReleaseViewProps) {
  return wholePage({
    title: `Release ${hold.compute_id}`,
    children: (
      <>
        <h1>Release a hold</h1>
        <dl class="facts">
          <dt>Compute</dt>
          <dd>
            <ComputeLink id={hold.compute_id} />
          </dd>
          <dt>What</dt>
          <dd>{holdWords(hold)}</dd>
          <dt>Owner</dt>
          <dd>{hold.owner}</dd>
          <dt>Reason</dt>
          <dd>{hold.reason}</dd>
          <dt>Until</dt>
          <dd>{hold.expires_at === null ? 'released' : <Minute iso={hold.expires_at} />}</dd>
        </dl>
        <ReleaseForm holdId={hold.id} written={written} problem={problem} token={token} />
      </>
    ),
  });
}

/** The error, and the failed readiness checks, which often explain it. */
export function errorView({ message, readiness }: { message: string; readiness?: Readiness | undefined }) {
  const missing = readiness?.checks.filter(({ ok }) => !ok) ?? [];
  return wholePage({
    title: 'Not shown',
    children: (
      <>
        <h1>This can't be shown</h1>
        <p class="notice bad">{message}</p>
        {missing.length > 0 && (
          <ul>
            {missing.map((check) => (
              <li>
                {check.name}: {check.message}
              </li>
            ))}
          </ul>
        )}
        <p>
          <a href="/">Back to the fleet</a>
        </p>
      </>
    ),
  });
}

/** A page as its view makes it. */
export type Html = ReturnType<typeof errorView>;

/** Of a page that is shown: 200, or why its form could not be taken. */
export type PageStatus = 200 | 401 | (typeof STATUS)[OperatorError['code']];

/** The page, or the error as a page. */
export function pageAnswer<T>(
  context: Context,
  result: OperatorResult<T>,
  view: (value: T) => Html,
  status: PageStatus = 200,
) {
  return result.ok ? context.html(view(result.value), status) : errorAnswer(context, result.error);
}

export function errorAnswer(context: Context, { code, message }: OperatorError) {
  return context.html(errorView({ message }), STATUS[code]);
}
