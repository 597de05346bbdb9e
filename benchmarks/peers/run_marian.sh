#!/bin/sh
# The comparison with Marian, and of our DNC with that of PyTorch, on one thread and two. JSON lines
# go to standard output and to files in OUT_DIR; given again, the command measures only what is
# missing there.
#
# usage: CORPUS_DIR=dir OURS_OUT_DIR=dir [PAIRS=5] [STEPS=900] \
#     [OUT_DIR=benchmarks/peers/.work] sh benchmarks/peers/run_marian.sh
#
# CORPUS_DIR and OURS_OUT_DIR are those of run.sh.
set -eu

cd "$(dirname -- "$0")/../.."
if [ -z "${CORPUS_DIR:-}" ] || [ -z "${OURS_OUT_DIR:-}" ]; then
    echo "run_marian.sh: set CORPUS_DIR and OURS_OUT_DIR, as for make bench-peers" >&2
    exit 2
fi

sh benchmarks/peers/setup.sh marian dnc >&2

compare() {
    .venv/bin/python -m benchmarks.peers.compare --corpus_dir="$CORPUS_DIR" \
        --pairs="${PAIRS:-5}" --ours_out_dir="$OURS_OUT_DIR" "$@"
}

weights() {
    .venv/bin/python -m benchmarks.peers.marian_weights "$@" >&2
}

# One RNNSearch for both programs: Marian writes a model, and gets the weights of ours.
work=benchmarks/peers/.work
marian=$work/marian
if [ ! -f "$marian/template.npz" ]; then
    compare --what=checkpoint --systems=marian --threads=1 --warmup=1 --steps=1
    mv "$marian/model.npz" "$marian/template.npz"
fi
if [ ! -d "$marian/ours/best_bleu" ]; then
    weights train --corpus_dir="$CORPUS_DIR" --vocab_prefix=$work/vocab/ours \
        --out_dir="$marian/ours" --steps="${STEPS:-900}"
fi
if [ ! -f "$marian/shortlist.txt" ]; then
    weights convert --out_dir="$marian/ours" --template="$marian/template.npz" \
        --output="$marian/model.npz"
    .venv/bin/python -m tfmann shortlist --out_dir="$marian/ours" >&2
    weights shortlist --lexicon="$marian/ours/shortlist.txt" --output="$marian/shortlist.txt"
fi

out=${OUT_DIR:-$work}
marians=marian,marian_int8,marian_shortlist,marian_int8_shortlist
for threads in 1 2; do
    compare --what=train --threads=$threads --resident --systems=marian,rnnsearch,ours \
        --out="$out/peers-marian-train-$threads.jsonl"
    for search in beam greedy; do
        compare --what=$search --threads=$threads --resident --systems=$marians,rnnsearch,ours \
            --out="$out/peers-marian-$search-$threads.jsonl"
    done
    for size in tasks large; do
        .venv/bin/python -m benchmarks.peers.memories --size=$size --threads=$threads \
            --pairs="${PAIRS:-5}" --out="$out/peers-memory-$size-$threads.jsonl"
    done
done
