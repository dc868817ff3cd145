#!/usr/bin/env bash
# Compile proofs/ with Coq, and let Coq say of every theorem there that it rests on no axiom and no gap.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
command -v coqc >/dev/null || {
    echo "Coq with MathComp is needed: apt-get install coq libcoq-mathcomp-algebra" >&2
    exit 1
}
if grep -nwE 'Admitted|admit|Axiom|Axioms|Parameter|Parameters|Conjecture' proofs/*.v; then
    echo "proofs/ must hold no gap and no axiom" >&2
    exit 1
fi
rm -rf build/proofs
mkdir -p build/proofs
cp proofs/*.v build/proofs
cd build/proofs
files=(hockey_stick vertex waiting_time histogram display between noise crowd composition value exact_or_noised sample)  # each after those it uses
[ "$(ls ./*.v | wc -l)" -eq "${#files[@]}" ] || { echo "name every file of proofs/ in $0" >&2; exit 1; }
theorems=$(sed -nE 's/^(Theorem|Corollary) (\w+).*/\2/p' "${files[@]/%/.v}")
{
    echo "From pkdp Require Import ${files[*]}."
    for theorem in $theorems; do echo "Print Assumptions $theorem."; done
} >assumptions.v
for file in "${files[@]}" assumptions; do
    # MathComp itself gives these warnings when it is loaded.
    timeout 240 coqc -q -w -notation-overridden,-ambiguous-paths -R . pkdp "$file.v" | tee "$file.out"
done >/dev/null
wanted=$(wc -w <<<"$theorems")
closed=$(grep -c '^Closed under the global context$' assumptions.out || true)
[ "$wanted" -gt 0 ] && [ "$closed" -eq "$wanted" ] || { cat assumptions.out; exit 1; }
echo "$wanted theorems proved, none with an axiom:" $theorems
