/** Reads lists page by page, up to their end. */
import type { HistoryEntry } from '../domain/records/history.ts';
import { MAX_PER_PAGE, type OperatorResult, type Page, type PageQuery } from '../ports/operator.ts';
import type { AuditQuery, Store } from '../ports/store.ts';

export type AskForPage<T> = (query: PageQuery) => Promise<OperatorResult<Page<T>>>;

/** Yields the pages of one of the operator's lists, up to the last page or a refusal. */
export async function* pagesOf<T>(ask: AskForPage<T>): AsyncGenerator<OperatorResult<T[]>> {
  let after: string | undefined;
  do {
    const page = await ask({ limit: MAX_PER_PAGE, after });
    yield page.ok ? { ok: true, value: page.value.items } : page;
    after = page.ok ? (page.value.next ?? undefined) : undefined;
  } while (after !== undefined);
}

/** Returns all items of one of the operator's lists. If a page is refused, returns the refusal: an incomplete list would mislead. */
export async function itemsOfAllPages<T>(ask: AskForPage<T>): Promise<OperatorResult<T[]>> {
  const items: T[] = [];
  for await (const page of pagesOf(ask)) {
    if (!page.ok) return page;
    items.push(...page.value);
  }
  return { ok: true, value: items };
}

/** Yields the audit entries of a store, newest first. */
export async function* auditEntries(
  store: Pick<Store, 'audit'>,
  span: Pick<AuditQuery, 'sinceMs' | 'untilMs'>,
): AsyncGenerator<HistoryEntry> {
  let after: string | undefined;
  do {
    const { entries, next } = await store.audit({ ...span, limit: MAX_PER_PAGE, after });
    yield* entries;
    after = next;
  } while (after !== undefined);
}
