#!/usr/bin/env bash
# Remakes the pictures of the README from the fixtures, with a Chromium on PATH: docs/images/remake.sh
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# The kernels that the picture shows spill, on an A100; a finding makes the exit status 1.
cargo run --quiet --release -- --isolated --gpu a100-pcie-40gb -f html -o "$work/report.html" \
  fixtures/ptxas/13.5/spill-maxreg32-sm80/input.log fixtures/ptx/13.5/parity-branch/input.ptx || (($? == 1))

# shot HASH FILE WIDTH HEIGHT
shot() {
  chromium --headless=new --no-sandbox --disable-gpu --hide-scrollbars --force-device-scale-factor=1.5 \
    --user-data-dir="$work/profile" --window-size="$3,$4" --virtual-time-budget=3000 \
    --screenshot="$PWD/docs/images/$2" "file://$work/report.html#$1"
}

shot kernel/2 report.png 1000 860
