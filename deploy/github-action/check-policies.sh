#!/usr/bin/env bash
# Checks the policies of a branch against another commit: for any CI system. docs/how-to-pull-requests.md
#   check-policies.sh BASE OUT
# BASE: a commit, such as origin/main. OUT: the file for the comparison, as Markdown.
# EBB_POLICIES: file, folder or glob in the repository (default: policies). EBB_FLEET: a snapshot, so that no key is needed.
# EBB_STRICT: false if warnings may pass. EBB_DAYS: days to compare (default: 7). EBB_FORMAT: github marks lines, text prints them.
# Exit code 0: valid. 1: a problem, with its place.
set -euo pipefail

base=${1:?"the commit to compare with is missing, such as origin/main"}
out=${2:?"the file for the comparison is missing"}
policies=${EBB_POLICIES:-policies}
fleet=()
[ -z "${EBB_FLEET:-}" ] || fleet=(--fleet "$EBB_FLEET")
strict=()
[ "${EBB_STRICT:-true}" = false ] || strict=(--strict)

ebb validate "${strict[@]}" --format "${EBB_FORMAT:-text}" "${fleet[@]}" "$policies"
if [ "${#fleet[@]}" -eq 0 ]; then
  echo "No snapshot of the fleet (EBB_FLEET), so the policies are not compared." >&2
  : >"$out"
  exit 0
fi

before=$(mktemp -d)
trap 'rm -rf "$before"' EXIT
git rev-parse --quiet --verify "$base^{commit}" >/dev/null || {
  echo "$base is not in this clone: check out with the history (fetch-depth: 0)" >&2
  exit 1
}
git archive "$base" | tar -x -C "$before"
# Whole days, so that a later run of the same day prints the same.
from=$(date -u -d tomorrow +%Y-%m-%dT00:00:00Z 2>/dev/null || date -u -v+1d +%Y-%m-%dT00:00:00Z)
ebb diff "$before/$policies" "$policies" "${fleet[@]}" --from "$from" --days "${EBB_DAYS:-7}" --format markdown >"$out"
