import type { ApiResult, ControlApiError } from '../../ports/control-api.ts';

/** One page of a list, and the cursor to the next. */
export interface Page<T> {
  items: T[];
  cursor: string | undefined;
}

/**
 * The pages of a list, each fetched when it is asked for. The end is a page without items (whatever cursor it carries) or without
 * a cursor (whatever items it carries): the API shows both. An error, or a cursor that was seen before, ends the list with an error.
 */
export async function* pagesOf<T>(
  fetchPage: (cursor: string | undefined) => Promise<ApiResult<Page<T>>>,
  repeated: () => { ok: false; error: ControlApiError },
): AsyncGenerator<ApiResult<T[]>> {
  const seen = new Set<string>();
  let cursor: string | undefined;
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
    if (seen.has(cursor)) {
      yield repeated();
      return;
    }
    seen.add(cursor);
  }
}
