/** What would cost less, as the HTTP API, the page and `ebb recommend --json` show it. Forms as in documents.ts. */
import type { Figure, Range } from '../domain/awake/causes.ts';
import type { Fields, FindingKind } from '../domain/recommend/finding.ts';

/** A month has 730 h. */
export interface FindingDocument {
  finding: FindingKind;
  project_id: string;
  project_name: string;
  compute_id: string;
  owner: string;
  /** The fields that would change. */
  now: Fields;
  proposed: Fields;
  /** What the saving promises: docs/recommend.md. */
  figure: Figure;
  /** In dollars where the plan is known. */
  saves: { cu_hours_month: Range; usd_month: Range | null };
  starts_month: { now: number; then: Range } | null;
  awake_share: { now: number; then: Range } | null;
  evidence: string[];
  /** What may go wrong. */
  risk: string;
  /** The text of a policy file; null where no policy does it. */
  policy: string | null;
}

/** What findings of one figure add up to. Figures are not added to each other, since they promise different things. */
export interface FigureTotal {
  figure: Figure;
  findings: number;
  cu_hours_month: Range;
  /** Of those that have a price; null if none has. */
  usd_month: Range | null;
}

export interface WasteTotal extends FigureTotal {
  /** False: only people can do it. */
  by_policy: boolean;
}

/** The findings of the whole fleet, those that may save most first. */
export interface WasteDocument {
  /** Between these instants the computes were looked at, each once a day; null before the first. */
  from: string | null;
  to: string | null;
  /** Projects that were looked at. */
  projects: number;
  matched: number;
  /** From 1. */
  page: number;
  pages: number;
  /** Of all that matched. */
  totals: WasteTotal[];
  /** Of all findings, to choose from. */
  owners: string[];
  findings: FindingDocument[];
}

export interface WasteQuery {
  /** Whole names; absent: any. */
  owner?: string | undefined;
  finding?: FindingKind | undefined;
  /** From 1; one beyond the end gives the last. */
  page: number;
}

/** How many findings a page has. */
export const FINDINGS_PER_PAGE = 100;
