import type { Context } from 'hono';
import type { OperatorError, OperatorResult } from '../../../ports/operator.ts';
import { STATUS } from '../api/answer.ts';
import { errorView } from './small-views.tsx';

/** A page as its view makes it. */
export type Html = ReturnType<typeof errorView>;

/** Of a page that is shown: 200, or why its form could not be taken. */
export type PageStatus = 200 | 401 | (typeof STATUS)[OperatorError['code']];

/** What was asked for as a page, or the error as one. */
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
