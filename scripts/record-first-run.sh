#!/usr/bin/env bash
# Draws docs/images/first-run.svg anew, by the commands of the README on a fresh emulator: npm run build && scripts/record-first-run.sh
set -euo pipefail
root=$(cd "$(dirname "$0")/.." && pwd)
folder=$(mktemp -d)
trap 'kill $(jobs -p); rm -rf "$folder"' EXIT
mkdir "$folder/bin" "$folder/fleet"
ln -s "$root/dist/cli/main.js" "$folder/bin/ebb"
unset "${!EBB_@}" NEON_API_KEY
export PATH="$folder/bin:$PATH" EBB_LOG_FORMAT=text
cd "$folder/fleet"

ebb emulator --projects 8 --computes-per-project 1 --load --history 21 > ../emulator.json &
until [ -s ../emulator.json ]; do kill -0 $!; sleep 1; done
field() { sed "s/.*\"$1\":\"\([^\"]*\)\".*/\1/" ../emulator.json; }
EBB_API_URL=$(field url) EBB_API_KEY=$(field api_key)
export EBB_API_URL EBB_API_KEY

show() {
  echo "\$ $*"
  eval "timeout 30 $*" 2>&1 || true # ebb plan ends with 2, ebb run with the time
}
{
  show ebb report
  echo
  show 'ebb init > /dev/null'
  show ebb recommend --write recommended
  echo
  show 'cp recommended/*.yaml policies'
  show ebb plan
  echo
  show ebb run | grep -v "stopping"
} > ../session.txt
cd "$root"
npx tsx scripts/render-terminal.ts < "$folder/session.txt" > docs/images/first-run.svg
