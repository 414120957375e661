/** Small documents that the daemons of a group share through the store. Each is JSON with a version. */
import { parseJson } from '../common/result.ts';
import type { DocumentStore } from '../ports/store.ts';

/** The most attempts to change a document while other daemons write it. */
const MAX_TRIES = 50;

/** Tells when the store has lost its data. */
export interface StoreLosses {
  /** Calls `writeBack` after each loss, to store what this daemon remembers of its work as the leader, even if another daemon leads by now. */
  onLoss(writeBack: () => Promise<void>): void;
}

/** A document that was opened to be changed. */
export interface OpenDocument<Value> {
  /** Undefined if there is no document, or another version of ebb has written it. */
  value: Value | undefined;
  /** Replaces the value. If the document has changed since it was opened, writes nothing and returns false. */
  replace(value: Value): Promise<boolean>;
}

/** Documents of one kind, by name. */
export interface SharedDocuments<Value> {
  all(store: Pick<DocumentStore, 'documents'>): Promise<Map<string, Value>>;
  read(store: Pick<DocumentStore, 'document'>, name: string): Promise<Value | undefined>;
  open(store: Pick<DocumentStore, 'document' | 'replaceDocument'>, name: string): Promise<OpenDocument<Value>>;
  /** Changes the value, and tries again if another daemon has replaced it meanwhile. Returns false after {@link MAX_TRIES} attempts. */
  update(
    store: Pick<DocumentStore, 'document' | 'replaceDocument'>,
    name: string,
    change: (stored: Value | undefined) => Value,
  ): Promise<boolean>;
  /** Stores the value if none is stored. */
  fill(store: Pick<DocumentStore, 'document' | 'replaceDocument'>, name: string, value: Value): Promise<void>;
  put(store: Pick<DocumentStore, 'putDocument'>, name: string, value: Value): Promise<void>;
  delete(store: Pick<DocumentStore, 'deleteDocuments'>, names: readonly string[]): Promise<void>;
}

/** The only document of its kind. */
interface SharedDocument<Value> {
  /** Undefined if there is none, or another version of ebb has written it. */
  read(store: Pick<DocumentStore, 'document'>): Promise<Value | undefined>;
  open(store: Pick<DocumentStore, 'document' | 'replaceDocument'>): Promise<OpenDocument<Value>>;
  /** Like `update` of {@link SharedDocuments}. */
  update(
    store: Pick<DocumentStore, 'document' | 'replaceDocument'>,
    change: (stored: Value | undefined) => Value,
  ): Promise<boolean>;
  /** Stores the value, if there is one and none is stored. */
  fill(store: Pick<DocumentStore, 'document' | 'replaceDocument'>, value: Value | undefined): Promise<void>;
  /** Stores the value; without a value, deletes the stored one. */
  keep(store: Pick<DocumentStore, 'putDocument' | 'deleteDocuments'>, value: Value | undefined): Promise<void>;
}

/** Returns a document that has one name in its collection; see {@link sharedDocuments}. */
export function sharedDocument<Value>(collection: string, name: string, version: number): SharedDocument<Value> {
  const documents = sharedDocuments<Value>(collection, version);
  return {
    read: (store) => documents.read(store, name),
    open: (store) => documents.open(store, name),
    update: (store, change) => documents.update(store, name, change),
    fill: async (store, value) => void (value !== undefined && (await documents.fill(store, name, value))),
    keep: (store, value) => (value === undefined ? documents.delete(store, [name]) : documents.put(store, name, value)),
  };
}

/** Returns the documents of a collection. Raise `version` when the form of the value changes: other versions count as absent. */
export function sharedDocuments<Value>(collection: string, version: number): SharedDocuments<Value> {
  const encode = (value: Value) => JSON.stringify({ version, value });
  const decode = (text: string | undefined): Value | undefined => {
    const parsed = text === undefined ? undefined : (parseJson(text) as { version?: unknown; value: Value } | null);
    return parsed?.version === version ? parsed.value : undefined;
  };
  const open: SharedDocuments<Value>['open'] = async (store, name) => {
    const storedText = await store.document(collection, name);
    return {
      value: decode(storedText),
      replace: (value) => store.replaceDocument(collection, name, { was: storedText, text: encode(value) }),
    };
  };
  return {
    async all(store) {
      const values = new Map<string, Value>();
      for (const [name, text] of await store.documents(collection)) {
        const value = decode(text);
        if (value !== undefined) values.set(name, value);
      }
      return values;
    },
    read: async (store, name) => decode(await store.document(collection, name)),
    open,
    async update(store, name, change) {
      for (let tries = 0; tries < MAX_TRIES; tries += 1) {
        const { value, replace } = await open(store, name);
        if (await replace(change(value))) return true;
      }
      return false;
    },
    async fill(store, name, value) {
      const stored = await open(store, name);
      if (stored.value === undefined) await stored.replace(value);
    },
    put: (store, name, value) => store.putDocument(collection, name, encode(value)),
    delete: (store, names) => store.deleteDocuments(collection, names),
  };
}
