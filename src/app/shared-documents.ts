/** Small documents that the daemons of a group share through the store. Each is JSON with a version. */
import { parseJson } from '../common/result.ts';
import type { DocumentStore } from '../ports/store.ts';

/** The value of a document; undefined where there is none, or where another version of ebb has written it. */
export interface OpenDocument<Value> {
  value: Value | undefined;
  /** False, and nothing written, if the document has changed since it was opened. */
  replace(value: Value): Promise<boolean>;
}

/** Documents of one kind, by name. */
export interface SharedDocuments<Value> {
  all(store: Pick<DocumentStore, 'documents'>): Promise<Map<string, Value>>;
  read(store: Pick<DocumentStore, 'document'>, name: string): Promise<Value | undefined>;
  /** Opens a document to change it by its value. */
  open(store: Pick<DocumentStore, 'document' | 'replaceDocument'>, name: string): Promise<OpenDocument<Value>>;
  put(store: Pick<DocumentStore, 'putDocument'>, name: string, value: Value): Promise<void>;
  delete(store: Pick<DocumentStore, 'deleteDocuments'>, names: readonly string[]): Promise<void>;
}

/** The version changes with the form of the value: documents of another version count as absent. */
export function sharedDocuments<Value>(collection: string, version: number): SharedDocuments<Value> {
  const encode = (value: Value) => JSON.stringify({ version, value });
  const decode = (text: string | undefined): Value | undefined => {
    const parsed = text === undefined ? undefined : (parseJson(text) as { version?: unknown; value: Value } | null);
    return parsed?.version === version ? parsed.value : undefined;
  };
  return {
    async all(store) {
      const found = new Map<string, Value>();
      for (const [name, text] of await store.documents(collection)) {
        const value = decode(text);
        if (value !== undefined) found.set(name, value);
      }
      return found;
    },
    read: async (store, name) => decode(await store.document(collection, name)),
    async open(store, name) {
      const was = await store.document(collection, name);
      return {
        value: decode(was),
        replace: (value) => store.replaceDocument(collection, name, { was, text: encode(value) }),
      };
    },
    put: (store, name, value) => store.putDocument(collection, name, encode(value)),
    delete: (store, names) => store.deleteDocuments(collection, names),
  };
}
