import type { ApiResult, ControlApiError } from '../../ports/control-api.ts';

/** One page of a list, and the cursor to the next. */
export interface Page<T> {
  items: T[];
  cursor: string | undefined;
}

/** How much of one list is read; far more than any list has. */
export interface ListLimits {
  pages: number;
  /** Those that come twice count twice. */
  items: number;
  /** Real milliseconds; the page that is under way then is still waited for. */
  ms: number;
}

export const LIST_LIMITS: ListLimits = { pages: 300, items: 100_000, ms: 300_000 };

export interface PagesOptions<T> {
  fetchPage: (cursor: string | undefined) => Promise<ApiResult<Page<T>>>;
  /** The error for a list that has no end; `why` says what was seen of it. */
  endless: (why: string) => { ok: false; error: ControlApiError };
  limits?: ListLimits;
  /** Real milliseconds from an arbitrary start. */
  monotonicMs?: () => number;
}

/**
 * The pages of a list, each fetched when it is asked for. The end is a page without items (whatever cursor it carries) or without
 * a cursor (whatever items it carries): the API shows both. An error ends the list with an error, and so do a cursor that was seen
 * before and more than the limits allow: what was not seen may exist.
 */
export async function* pagesOf<T>(options: PagesOptions<T>): AsyncGenerator<ApiResult<T[]>> {
  const { fetchPage, endless, limits = LIST_LIMITS, monotonicMs = () => performance.now() } = options;
  const startedAtMs = monotonicMs();
  const seen = new Set<string>();
  let cursor: string | undefined;
  let items = 0;
  while (true) {
    const page = await fetchPage(cursor);
    if (!page.ok) {
      yield page;
      return;
    }
    if (page.value.items.length === 0) return;
    yield { ok: true, value: page.value.items };
    cursor = page.value.cursor;
    if (cursor === undefined || cursor === '') return;
    items += page.value.items.length;
    const why = seen.has(cursor)
      ? 'a cursor came twice'
      : tooMuch({ pages: seen.size + 1, items, ms: monotonicMs() - startedAtMs }, limits);
    if (why !== undefined) {
      yield endless(why);
      return;
    }
    seen.add(cursor);
  }
}

/** Undefined while the next page may be fetched. */
function tooMuch(read: ListLimits, limits: ListLimits): string | undefined {
  if (read.pages >= limits.pages) return `more than ${limits.pages} pages`;
  if (read.items >= limits.items) return `more than ${limits.items} items`;
  return read.ms >= limits.ms ? `more pages after ${limits.ms / 1000} s` : undefined;
}
