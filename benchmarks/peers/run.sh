#!/bin/sh
# All of the comparison with the peers: installs them, trains the checkpoints that decoding needs
# (once), and measures training, decoding and the minutes to a development BLEU of 25. JSON lines
# go to standard output and to files in OUT_DIR; given again, the command measures only what is
# missing there.
#
# usage: CORPUS_DIR=dir [OURS_OUT_DIR=dir] [PAIRS=5] [THREADS=2] \
#     [OUT_DIR=benchmarks/peers/.work] sh benchmarks/peers/run.sh
#
# CORPUS_DIR holds Multi30k's tokenised train, val and test_2016_flickr files (.de and .en).
# OURS_OUT_DIR is our model, trained on the same corpus with ours.json; without it decoding is
# measured for the peers alone.
set -eu

cd "$(dirname -- "$0")/../.."
if [ -z "${CORPUS_DIR:-}" ]; then
    echo "bench-peers: set CORPUS_DIR to a folder with train.de, train.en, val.*," \
        "test_2016_flickr.*" >&2
    exit 2
fi

sh benchmarks/peers/setup.sh >&2

compare() {
    .venv/bin/python -m benchmarks.peers.compare --corpus_dir="$CORPUS_DIR" \
        --threads="${THREADS:-2}" "$@"
}

work=benchmarks/peers/.work
[ -d "$work/joey" ] || compare --what=checkpoint --steps=880 --systems=joey
[ -d "$work/onmt" ] || compare --what=checkpoint --steps=880 --systems=onmt
out=${OUT_DIR:-$work}
compare --what=train --pairs="${PAIRS:-5}" --out="$out/peers-train.jsonl"
if [ -n "${OURS_OUT_DIR:-}" ]; then
    compare --what=decode --pairs="${PAIRS:-5}" --ours_out_dir="$OURS_OUT_DIR" \
        --out="$out/peers-decode.jsonl"
else
    compare --what=decode --pairs="${PAIRS:-5}" --systems=joey,onmt \
        --out="$out/peers-decode.jsonl"
fi
.venv/bin/python -m benchmarks.peers.to_bleu --corpus_dir="$CORPUS_DIR" \
    --threads="${THREADS:-2}" --pairs="${PAIRS:-5}" --out="$out/peers-to-bleu.jsonl"
