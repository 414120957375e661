import { ANSWER_GRACE_MS } from '../../records/confirm-write.ts';
import type { Gate } from './gate.ts';

/** A change that was sent without an answer may still arrive: nothing is sent until it is seen, or surely lost. */
export const answerUnknown: Gate = ({ record }) => {
  if (!record?.intent) return undefined;
  const untilMs = record.intent.atMs + ANSWER_GRACE_MS;
  return { code: 'answer_unknown', message: 'a change was sent and got no answer; it may still take effect', untilMs };
};
