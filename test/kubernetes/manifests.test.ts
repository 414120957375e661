import { spawnSync } from 'node:child_process';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import * as operator from '@kubernetes-models/prometheus-operator/monitoring.coreos.com/v1';
import * as apps from 'kubernetes-models/apps/v1';
import * as networking from 'kubernetes-models/networking.k8s.io/v1';
import * as disruption from 'kubernetes-models/policy/v1';
import * as core from 'kubernetes-models/v1';
import { describe, expect, it } from 'vitest';
import { parse, parseAllDocuments } from 'yaml';

const FOLDER = 'deploy/kubernetes';

interface Manifest {
  apiVersion: string;
  kind: string;
  metadata: { name: string; namespace?: string; labels?: Record<string, string> };
  // biome-ignore lint/suspicious/noExplicitAny: what a manifest holds is checked against the schema of its kind.
  spec?: any;
  data?: Record<string, string>;
}
type Model = { prototype: { validate(): void } };

const MODELS: Readonly<Record<string, object>> = {
  v1: core,
  'apps/v1': apps,
  'policy/v1': disruption,
  'networking.k8s.io/v1': networking,
  'monitoring.coreos.com/v1': operator,
};

/**
 * Throws where a manifest breaks the schema of its kind, has a field that the schema lacks, or a kind that is not known here.
 * The schemas allow any additional field, so a field counts as unknown if checking the manifest never looked at it.
 */
function validate(manifest: Manifest): void {
  const KindModel = (MODELS[manifest.apiVersion] as Record<string, Model> | undefined)?.[manifest.kind];
  if (!KindModel) throw new Error(`no schema for ${manifest.apiVersion} ${manifest.kind}`);
  const unread = new Set<string>();
  KindModel.prototype.validate.call(watched(manifest, '', unread));
  if (unread.size > 0) throw new Error(`unknown fields: ${[...unread].join(', ')}`);
}

/** The same value, which takes every field that is read out of `unread`. */
function watched<T extends object>(value: T, path: string, unread: Set<string>): T {
  const watching = Object.entries(value).map(([key, field]) => {
    if (!Array.isArray(value)) unread.add(`${path}/${key}`);
    return [key, typeof field === 'object' && field ? watched(field, `${path}/${key}`, unread) : field];
  });
  const copy = Array.isArray(value) ? watching.map(([, field]) => field) : Object.fromEntries(watching);
  return new Proxy(copy, {
    get(target, key) {
      unread.delete(`${path}/${String(key)}`);
      return Reflect.get(target, key);
    },
  });
}

const read = (text: string) => parseAllDocuments(text).map((document) => document.toJS() as Manifest);

const files = readdirSync(FOLDER, { recursive: true, encoding: 'utf8' })
  .filter((file) => file.endsWith('.yaml') && !/kustomization|ebb\.yaml|policies\//.test(file))
  .map((file) => join(FOLDER, file));
const daemon = () => read(readFileSync(join(FOLDER, 'base/deployment.yaml'), 'utf8'))[0] as Manifest;

/** Kustomize of kubectl 1.21 or newer knows components. */
function kubectlRenders(): boolean {
  const { stdout, status } = spawnSync('kubectl', ['version', '--client'], { encoding: 'utf8' });
  const [, major, minor] = /(?:GitVersion:"|Client Version: )v(\d+)\.(\d+)/.exec(stdout ?? '') ?? [];
  return status === 0 && (Number(major) > 1 || Number(minor) >= 21);
}

describe.each(files)('%s', (file) => {
  it('is valid by the schemas of Kubernetes and of the Prometheus operator', () => {
    const manifests = read(readFileSync(file, 'utf8'));
    expect(manifests.length).toBeGreaterThan(0);
    for (const manifest of manifests) validate(manifest);
  });
});

it('a wrong field, type or kind is found', () => {
  const broken = (change: (manifest: Manifest) => void) => () => {
    const manifest = daemon();
    change(manifest);
    validate(manifest);
  };
  expect(broken(() => {})).not.toThrow();
  expect(broken(({ spec }) => Object.assign(spec, { replicas: 'two' }))).toThrow(/replicas/);
  expect(broken(({ spec }) => Object.assign(spec, { selector: undefined }))).toThrow(/selector/);
  expect(broken(({ spec }) => Object.assign(spec, { replica: 2 }))).toThrow('unknown fields: /spec/replica');
  expect(broken((manifest) => Object.assign(manifest, { kind: 'Deploiment' }))).toThrow(/no schema/);
});

it('the daemon runs without privileges, on a root file system that it cannot write', () => {
  const pod = daemon().spec.template.spec;
  expect(pod.securityContext).toMatchObject({ runAsNonRoot: true, seccompProfile: { type: 'RuntimeDefault' } });
  expect(pod.automountServiceAccountToken).toBe(false);
  for (const { securityContext } of pod.containers) {
    expect(securityContext).toEqual({
      allowPrivilegeEscalation: false,
      readOnlyRootFilesystem: true,
      capabilities: { drop: ['ALL'] },
    });
  }
});

it('no Secret is in the manifests, and no value of an environment names one', () => {
  const all = files.flatMap((file) => read(readFileSync(file, 'utf8')));
  expect(all.filter(({ kind }) => kind === 'Secret')).toEqual([]);
  const values = daemon().spec.template.spec.containers[0].env.map(({ value }: { value?: string }) => value ?? '');
  expect(values.filter((value: string) => /password|token=|:\/\/[^/]*@/.test(value))).toEqual([]);
});

describe.skipIf(!kubectlRenders())('rendered by kubectl', () => {
  const render = (example: string) => {
    const { stdout, stderr, status } = spawnSync('kubectl', ['kustomize', join(FOLDER, 'examples', example)], {
      encoding: 'utf8',
    });
    expect({ status, stderr }).toEqual({ status: 0, stderr: '' });
    return read(stdout);
  };

  it.each(['redis-inside', 'redis-outside'])(
    '%s is valid, in one namespace, and all that is selected is there',
    (example) => {
      const manifests = render(example);
      for (const manifest of manifests) validate(manifest);
      expect(manifests.filter(({ metadata }) => metadata.namespace !== 'ebb')).toEqual([]);

      const labelled = manifests.flatMap(({ spec }) => (spec?.template ? [spec.template.metadata.labels] : []));
      const selectors = manifests.flatMap(({ kind, spec }) => {
        if (kind === 'Service') return [spec.selector];
        if (kind === 'NetworkPolicy') return [spec.podSelector.matchLabels];
        return kind === 'PodDisruptionBudget' ? [spec.selector.matchLabels] : [];
      });
      expect(selectors.length).toBeGreaterThan(2);
      for (const selector of selectors) expect(labelled).toContainEqual(expect.objectContaining(selector));
    },
  );

  it('names every ConfigMap that is mounted without a suffix, so that a change reaches the running pods', () => {
    const manifests = render('redis-inside');
    const mounted = manifests.flatMap(({ spec }) =>
      (spec?.template?.spec.volumes ?? []).flatMap(
        ({ configMap }: { configMap?: { name: string } }) => configMap?.name ?? [],
      ),
    );
    const made = manifests.filter(({ kind }) => kind === 'ConfigMap').map(({ metadata }) => metadata.name);
    expect(mounted.toSorted()).toEqual(made.toSorted());
  });

  it('the settings and policies of the base are what the daemon is told to read', () => {
    const manifests = render('redis-inside');
    const maps = new Map(
      manifests.flatMap(({ kind, metadata, data }) => (kind === 'ConfigMap' ? [[metadata.name, data]] : [])),
    );
    expect(parse(maps.get('ebb-settings')?.['ebb.yaml'] ?? '')).toEqual({ mode: 'observe', policies: '/ebb/policies' });
    expect(Object.keys(maps.get('ebb-policies') ?? {})).toEqual(['office-hours.yaml']);
  });
});
