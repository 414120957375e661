import type { Refusal, RefusalCode } from '../world/outcome.ts';

/** A route's answer before it is encoded. */
export interface Answer {
  status: number;
  /** Absent: no body. */
  body?: unknown;
  headers?: Record<string, string>;
}

const STATUS: Record<RefusalCode, number> = {
  invalid: 400,
  unauthorised: 401,
  forbidden: 403,
  not_found: 404,
  conflict: 409,
  precondition: 412,
  not_ready: 422,
  locked: 423,
};

/** A refusal in the vendor's shape; the request's id is added on its way out. */
export function errorAnswer(status: number, message: string, headers?: Record<string, string>): Answer {
  const answer: Answer = { status, body: { code: '', message } };
  return headers === undefined ? answer : { ...answer, headers };
}

export function refusalAnswer(refusal: Refusal): Answer {
  return errorAnswer(STATUS[refusal.code], refusal.message);
}
