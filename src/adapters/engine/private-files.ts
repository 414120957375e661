import { NodeFS } from '@electric-sql/pglite/nodefs';

/** What others may do with a file. */
const OF_OTHERS = 0o077;

/**
 * The folder of a PGlite whose files are its owner's alone. Emscripten gives some files the mode that C asks for after it has made
 * them, so that the umask of the process does not count.
 */
export function privateFiles(path: string): NodeFS {
  const files = new NodeFS(path);
  const init = files.init.bind(files);
  files.init = async (...args) => {
    const made = await init(...args);
    made.emscriptenOpts.preRun?.push((module) => {
      const { node_ops: operations } = module.NODEFS as unknown as { node_ops: { setattr: SetAttributes } };
      const { setattr } = operations;
      operations.setattr = (node, { mode, ...others }) =>
        setattr(node, { ...others, ...(mode !== undefined && { mode: mode & ~OF_OTHERS }) });
    });
    return made;
  };
  return files;
}

type SetAttributes = (node: unknown, attributes: { mode?: number }) => unknown;
