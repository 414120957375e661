import { COMPUTE_SIZES_CU } from '../../../domain/compute/compute-units.ts';
import type { HoldDocument } from '../../../ports/documents.ts';
import { MAX_CHARACTERS } from '../../../ports/operator.ts';
import { ComputeLink, holdWords, Instant, Table, timeoutWords } from './parts.tsx';

/** With `login` each request already carries a token; otherwise people must type one. */
export interface TokenNeed {
  login?: { name: string | undefined };
}

/** The typed fields, to show them again after an error; never the token. */
export type Written = Readonly<Record<string, string>>;

const HOUR_S = 3600;
const LENGTHS: readonly [seconds: number, words: string][] = [
  [HOUR_S / 2, '30 minutes'],
  [HOUR_S, '1 hour'],
  [2 * HOUR_S, '2 hours'],
  [4 * HOUR_S, '4 hours'],
  [8 * HOUR_S, '8 hours'],
  [24 * HOUR_S, '1 day'],
  [3 * 24 * HOUR_S, '3 days'],
  [7 * 24 * HOUR_S, '7 days'],
];
/** Seconds; -1 is never. */
const TIMEOUTS = [60, 300, 900, 1800, HOUR_S, 6 * HOUR_S, 24 * HOUR_S, -1];

interface FormProps {
  written: Written;
  problem?: string | undefined;
  token: TokenNeed;
}

/** Sets a hold, without a script. */
export function HoldForm({ computeId, written, problem, token }: FormProps & { computeId: string }) {
  return (
    <form method="post" action={`/computes/${computeId}/holds`} class="fields">
      <FormProblem problem={problem} />
      <Select name="min_cu" label="Minimum size, CU" written={written} options={SIZES} />
      <Select name="max_cu" label="Maximum size, CU" written={written} options={SIZES} />
      <Select name="suspend_timeout_seconds" label="Suspends after" written={written} options={SUSPENDS} />
      <label class="check">
        <input type="checkbox" name="freeze" value="on" checked={written.freeze === 'on'} />
        Keep it as it is, instead of the fields above
      </label>
      <Select name="for_seconds" label="For" written={{ for_seconds: `${2 * HOUR_S}`, ...written }} options={FOR} />
      <Text name="reason" label="Reason" written={written} most={MAX_CHARACTERS.reason} needed />
      <Person written={written} token={token} />
      <button type="submit">Hold</button>
    </form>
  );
}

export function ReleaseForm({ holdId, written, problem, token }: FormProps & { holdId: string }) {
  return (
    <form method="post" action={`/holds/${holdId}/release`} class="fields">
      <FormProblem problem={problem} />
      <Person written={written} token={token} />
      <button type="submit">Release</button>
    </form>
  );
}

function FormProblem({ problem }: { problem?: string | undefined }) {
  if (problem === undefined) return null;
  return (
    <p class="notice bad" role="alert">
      {problem}
    </p>
  );
}

type Options = readonly (readonly [value: string, words: string])[];

const FROM_POLICIES = ['', 'as policies say'] as const;
const SIZES: Options = [FROM_POLICIES, ...COMPUTE_SIZES_CU.map((cu) => [`${cu}`, `${cu}`] as const)];
const SUSPENDS: Options = [FROM_POLICIES, ...TIMEOUTS.map((seconds) => [`${seconds}`, timeoutWords(seconds)] as const)];
const FOR: Options = LENGTHS.map(([seconds, words]) => [`${seconds}`, words] as const);

function Select({ name, label, written, options }: FieldProps & { options: Options }) {
  return (
    <p>
      <label for={name}>{label}</label>
      <select id={name} name={name}>
        {options.map(([value, words]) => (
          <option value={value} selected={(written[name] ?? '') === value}>
            {words}
          </option>
        ))}
      </select>
    </p>
  );
}

interface FieldProps {
  name: string;
  label: string;
  written: Written;
}

function Text({ name, label, written, most, needed = false }: FieldProps & { most: number; needed?: boolean }) {
  return (
    <p>
      <label for={name}>{label}</label>
      <input id={name} name={name} type="text" value={written[name] ?? ''} maxlength={most} required={needed} />
    </p>
  );
}

/** The caller's name and token, as far as the login doesn't provide them. */
function Person({ written, token: { login } }: Pick<FormProps, 'written' | 'token'>) {
  const label = login ? 'Your name' : 'Your name (a name in your token takes precedence)';
  return (
    <>
      {login?.name === undefined ? (
        <Text name="owner" label={label} written={written} most={MAX_CHARACTERS.owner} />
      ) : (
        <p>As {login.name}</p>
      )}
      {login ? (
        <details>
          <summary>With another token</summary>
          <TokenField isNeeded={false} />
        </details>
      ) : (
        <TokenField isNeeded />
      )}
    </>
  );
}

function TokenField({ isNeeded }: { isNeeded: boolean }) {
  return (
    <p>
      <label for="token">Token</label>
      <input
        id="token"
        name="token"
        type="password"
        autocomplete="off"
        required={isNeeded}
        aria-describedby="token-help"
      />
      <small id="token-help" class="dim">
        It is sent with this form and kept nowhere.
        {isNeeded &&
          ' This daemon runs without EBB_TOKEN. With an embedded store, its token is in daemon.json in the folder of the store; otherwise use ebb hold and ebb release.'}
      </small>
    </p>
  );
}

interface HoldsProps {
  holds: readonly HoldDocument[];
  now: string;
  /** Text for an empty list. */
  none: string;
}

/** Active holds, as a narrow list. */
export function HoldList({ holds, now, none }: HoldsProps) {
  if (holds.length === 0) return <p class="dim">{none}</p>;
  return (
    <ul class="log">
      {holds.map((hold) => (
        <li>
          <ComputeLink id={hold.compute_id} /> {holdWords(hold)}{' '}
          {hold.expires_at === null ? (
            'until released'
          ) : (
            <>
              until <Instant iso={hold.expires_at} now={now} />
            </>
          )}
          <br />
          <span class="dim">
            {hold.owner}: {hold.reason}
          </span>{' '}
          <ReleaseLink hold={hold} />
        </li>
      ))}
    </ul>
  );
}

function ReleaseLink({ hold }: { hold: HoldDocument }) {
  return (
    <a href={`/holds/${hold.id}`}>
      Release<span class="unseen"> the hold on {hold.compute_id}</span>
    </a>
  );
}

/** Active holds, with links to pages that end them. */
export function Holds({ holds, now, none }: HoldsProps) {
  if (holds.length === 0) return <p class="dim">{none}</p>;
  return (
    <Table
      caption="Active holds"
      head={['Compute', 'What', 'Owner', 'Reason', 'Until', 'End it']}
      rows={holds.map((hold) => [
        <ComputeLink id={hold.compute_id} />,
        holdWords(hold),
        <p>{hold.owner}</p>,
        <p>{hold.reason}</p>,
        hold.expires_at === null ? 'released' : <Instant iso={hold.expires_at} now={now} />,
        <ReleaseLink hold={hold} />,
      ])}
    />
  );
}
