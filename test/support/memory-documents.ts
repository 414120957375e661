import type { DocumentStore } from '../../src/ports/store.ts';

/** A store of documents in the memory. */
export function memoryDocumentStore(): DocumentStore {
  const collections = new Map<string, Map<string, string>>();
  const of = (collection: string) => {
    const known = collections.get(collection) ?? new Map<string, string>();
    collections.set(collection, known);
    return known;
  };
  return {
    documents: async (collection) => new Map(of(collection)),
    document: async (collection, name) => of(collection).get(name),
    putDocument: async (collection, name, text) => void of(collection).set(name, text),
    async replaceDocument(collection, name, { was, text }) {
      if (of(collection).get(name) !== was) return false;
      of(collection).set(name, text);
      return true;
    },
    async deleteDocuments(collection, names) {
      for (const name of names) of(collection).delete(name);
    },
  };
}
