/** `order` breaks ties, in the order of insertion. */
interface DueEntry<T> {
  atMs: number;
  order: number;
  item: T;
}

/** A binary heap by instant: advancing time touches only due entries. */
export interface DueIndex<T> {
  add(atMs: number, item: T): void;
  /** Takes the earliest item that is due at `nowMs` or before; undefined if there is none. */
  takeDue(nowMs: number): { atMs: number; item: T } | undefined;
  /** The earliest instant at which something falls due. */
  nextAtMs(): number | undefined;
}

function isEarlier<T>(left: DueEntry<T>, right: DueEntry<T>): boolean {
  return left.atMs < right.atMs || (left.atMs === right.atMs && left.order < right.order);
}

function siftUp<T>(heap: DueEntry<T>[], entry: DueEntry<T>): void {
  let index = heap.length;
  heap.push(entry);
  while (index > 0) {
    const parentIndex = (index - 1) >> 1;
    const parent = heap[parentIndex];
    if (parent === undefined || !isEarlier(entry, parent)) break;
    heap[index] = parent;
    index = parentIndex;
  }
  heap[index] = entry;
}

function earlierChildIndex<T>(heap: DueEntry<T>[], index: number): number {
  const left = heap[2 * index + 1];
  const right = heap[2 * index + 2];
  return left !== undefined && right !== undefined && isEarlier(right, left) ? 2 * index + 2 : 2 * index + 1;
}

function siftDown<T>(heap: DueEntry<T>[], entry: DueEntry<T>): void {
  let index = 0;
  for (;;) {
    const childIndex = earlierChildIndex(heap, index);
    const child = heap[childIndex];
    if (child === undefined || !isEarlier(child, entry)) break;
    heap[index] = child;
    index = childIndex;
  }
  heap[index] = entry;
}

export function createDueIndex<T>(): DueIndex<T> {
  const heap: DueEntry<T>[] = [];
  let order = 0;
  return {
    add(atMs, item) {
      order += 1;
      siftUp(heap, { atMs, order, item });
    },
    takeDue(nowMs) {
      const first = heap[0];
      if (first === undefined || first.atMs > nowMs) return undefined;
      const last = heap.pop();
      if (last !== undefined && heap.length > 0) siftDown(heap, last);
      return { atMs: first.atMs, item: first.item };
    },
    nextAtMs: () => heap[0]?.atMs,
  };
}
