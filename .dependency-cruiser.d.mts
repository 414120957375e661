import type { IConfiguration } from 'dependency-cruiser';

/** Layers of `src/` by what each may import besides itself. */
export const LAYERS: Record<string, string[]>;

/** Folders of `src/domain`, from the bottom up. */
export const DOMAIN_FOLDERS: string[];

/** Folders of `src/app`, from the bottom up. */
export const APP_FOLDERS: string[];

declare const configuration: IConfiguration;
export default configuration;
