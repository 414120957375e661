import { stage } from './draft.ts';

/** Wants no value: whether a restart may be made now. */
export const allowRestart = stage(['restart'], (draft, { effective }) => {
  draft.restart = effective.restart[0];
});

/** Wants no value: the gate of freezes holds back what is written. */
export const noteFreezes = stage(['freeze'], (draft, { effective }) => {
  draft.freezes = effective.freeze;
});
